-- Errors that were caught. Behind pcall those of the server are text that begins with its code, which is all that tells
-- them from those of Lua.
local function raise_again(err)
    local said = type(err) == 'table' and err.err or tostring(err)
    if string.find(said, '^%-?%u%u') then
        -- as a table it keeps its code
        error({err = said})
    end
    error(said, 0)
end

-- Return what is said of an error that a damaged job can be the cause of: a key of another type, or bytes that cannot be
-- unpacked. Any other, such as one of rights or of replication, ends the script.
local function damage(err)
    local said = type(err) == 'table' and err.err or tostring(err)
    if string.find(said, '^%-?%u%u') and not string.find(said, '^%-?WRONGTYPE') then
        raise_again(err)
    end
    return said
end
