project = "hello"
