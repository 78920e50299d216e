--- Keys of a table in order: the one way to walk a table whose order must not be
-- visible. Keys are all strings or all numbers.
return function(t)
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  table.sort(keys)
  return keys
end
