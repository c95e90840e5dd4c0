-- Marks of the assembled Markdown that pandoc does not know by itself: <br> in cells of tables, what stands below a
-- line, and where a long name in a table may break.

local WHERE_NAMES_BREAK = "([_/.,=-])"
local LONGEST_UNBROKEN = 12

function RawInline(element)
  if element.format == "html" and element.text:match("^<br") then
    return pandoc.LineBreak()
  end
end

-- Typst has no styles by name, and sets in the first lines of all paragraphs but those in here.
function Div(element)
  if FORMAT == "typst" and element.attributes["custom-style"] then
    local name = element.attributes["custom-style"]:lower():gsub(" ", "-")
    local blocks = pandoc.Blocks({ pandoc.RawBlock("typst", "#" .. name .. "[") })
    blocks:extend(element.content)
    blocks:insert(pandoc.RawBlock("typst", "]"))
    return blocks
  end
end

function Span(element)
  if element.classes:includes("below") then
    return pandoc.Subscript(element.content)
  end
end

local function breakable(text)
  return (text:gsub(WHERE_NAMES_BREAK, "%1\u{200B}"):gsub("(%l)(%u)", "%1\u{200B}%2"))
end

function Table(element)
  return element:walk({
    Code = function(code)
      if #code.text > LONGEST_UNBROKEN then
        code.text = breakable(code.text)
      end
      return code
    end,
    Str = function(str)
      if #str.text > 24 and str.text:match("^[%w%p]+$") then
        str.text = breakable(str.text)
      end
      return str
    end,
  })
end
