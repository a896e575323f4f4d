print("all passed")
