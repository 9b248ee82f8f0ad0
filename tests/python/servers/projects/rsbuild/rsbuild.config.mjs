export default { html: { title: "hello" } };
