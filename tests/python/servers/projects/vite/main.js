document.body.textContent = "hello from vite";
