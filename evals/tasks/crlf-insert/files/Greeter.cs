using System;

class Greeter
{
	public string Hello(string name)
	{
		return "Hello, " + name;
	}
}
