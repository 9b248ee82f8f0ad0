import streamlit

streamlit.write("hello from streamlit")
