SITENAME = "hello"
PATH = "content"
TIMEZONE = "UTC"
