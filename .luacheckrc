std = "lua54"
max_line_length = false
self = false
cache = false
ignore = {
  "581", -- not (a <= b) is meant: NaN counts
  "21./_.*", -- a name with an underscore in front says that it is not used
}

-- tests run under busted; their helper defines `near`
files["tests/lua"] = { std = "+busted", globals = { "near" } }
