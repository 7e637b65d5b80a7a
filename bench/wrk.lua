-- For wrk: sends the requests of a file in a cycle, prints `enough` when `amount` requests are sent, and prints its results as
-- JSON when it is interrupted. Arguments after `--`: the file, with a path and a token per line, and the amount.

local requests = {}
local amount = 0
local sent = 0

function init(args)
  for line in io.lines(args[1]) do
    local path, token = line:match('^(%S+) (%S+)$')
    requests[#requests + 1] = wrk.format('GET', path, { Authorization = 'Bearer ' .. token })
  end
  amount = tonumber(args[2])
end

function request()
  sent = sent + 1
  if sent == amount then
    io.stdout:write('enough\n')
    io.stdout:flush()
  end
  return requests[(sent - 1) % #requests + 1]
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    '\n{"answered":%d,"microseconds":%d,"p50":%d,"p99":%d,"rejected":%d,"failed":%d}',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout
  ))
end
