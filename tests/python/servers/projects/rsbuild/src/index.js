document.body.textContent = "hello from rsbuild";
