-- Asks for the oracle's pages one after the other, as ringcrawl asks: wrk -s pages.lua URL -- TARGETS
--
-- TARGETS is a file of lines `HOST PATH`. Decides: requests are written once, before the clock starts; gzip is
-- accepted. Limits: answers are read by wrk and thrown away; one thread.

local requests, last = {}, 0

function init(arguments)
   for line in io.lines(arguments[1]) do
      local host, path = line:match("^(%S+) (.+)$")
      local fields = { ["Host"] = host, ["Accept-Encoding"] = "gzip", ["User-Agent"] = "peer-wrk" }
      requests[#requests + 1] = wrk.format("GET", path, fields)
   end
end

function request()
   last = last % #requests + 1
   return requests[last]
end

function done(summary, _, _)
   local errors = summary.errors
   local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
   io.write(string.format('\n{"replies":%d,"seconds":%f,"failed":%d,"bytes":%d}\n',
      summary.requests, summary.duration / 1e6, failed, summary.bytes))
end
