import marimo

app = marimo.App()


@app.cell
def _():
    print("hello from marimo")
    return


if __name__ == "__main__":
    app.run()
