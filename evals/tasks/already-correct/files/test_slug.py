from slug import slug

assert slug("Hello World") == "hello-world"
assert slug("  What's new?  ") == "what-s-new"
print("all passed")
