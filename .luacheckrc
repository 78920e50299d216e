std = "lua54"
max_line_length = 130
self = false
cache = false

-- tests run under busted; their helper defines `near`
files["tests/lua"] = { std = "+busted", globals = { "near" } }
