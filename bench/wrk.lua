-- For wrk: sends the requests of a file one after the other, in a round; says `enough` when so many are sent, and prints as JSON what
-- it saw when it is interrupted. Behind `--` stand the file, a path and a token on each line, and how many are enough.

local requests = {}
local most = 0
local sent = 0

function init(args)
  for line in io.lines(args[1]) do
    local path, token = line:match('^(%S+) (%S+)$')
    requests[#requests + 1] = wrk.format('GET', path, { Authorization = 'Bearer ' .. token })
  end
  most = tonumber(args[2])
end

function request()
  sent = sent + 1
  if sent == most then
    io.stdout:write('enough\n')
    io.stdout:flush()
  end
  return requests[(sent - 1) % #requests + 1]
end

function done(summary, latency)
  local failed = summary.errors
  print(string.format(
    '\n{"answered":%d,"microseconds":%d,"p50":%d,"p99":%d,"p999":%d,"refused":%d,"failed":%d}',
    summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9),
    failed.status, failed.connect + failed.read + failed.write + failed.timeout
  ))
end
