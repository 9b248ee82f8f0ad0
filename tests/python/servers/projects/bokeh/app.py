from bokeh.io import curdoc
from bokeh.models import Div

curdoc().title = "hello"
curdoc().add_root(Div(text="hello from bokeh"))
