run ->(_env) { [200, { "content-type" => "text/plain" }, ["hello from rack"]] }
