# Draws what a run of the model printed as a sequence diagram: a column for each holder, one for Redis. Variables: title.
#   @H>. C     command C leaves for hold H        @H>R C   it arrives        @H< C V   it is answered with verdict V
#   @H? C ..   no answer in time, or lost         @R ..    what Redis does   @H! ..    what happens to the holder
#   @CN ..     what happens to client N           @X ..    what is violated
#   @T ..      a tick                             @NI ..   what happens to node I of a quorum
#   @S ..      what somebody outside does
# A number in what Redis does, or somebody outside, is a hold, or a ticket of the line.
# Needs n (holders) and holders (of one client), with -v.
BEGIN {
  split("acquire 1,acquire again 2,transfer to 4,re-enter 8,re-enter again 16,lower 32,lower again 64,release 128,release again 256,renew 512,leave 1024", list, ",")
  for (i in list) { match(list[i], / [0-9]+$/); command[substr(list[i], RSTART + 1) + 0] = substr(list[i], 1, RSTART - 1) }
  verdict[1] = "has it"; verdict[2] = "another hold has it"; verdict[3] = "no such hold"; verdict[4] = "another client's turn"
  wide = 30
}
function name(h) { return sprintf("%c%d", 65 + int((h % n) / holders), h % holders + 1) }
function hold(h) { return name(h) "." int(h / n) + 1 }
function names(text,    out, w, i, k) {
  k = split(text, w, " ")
  for (i = 1; i <= k; i++) out = out (i > 1 ? " " : "") (w[i] ~ /^[0-9]+,?$/ ? hold(w[i] + 0) (w[i] ~ /,$/ ? "," : "") : w[i])
  return out
}
function cell(text) { return sprintf("%-" wide "s", text) }
function line(who, text, redis,    i, out) {
  for (i = 0; i < n; i++) if (used[i]) out = out cell(i == who ? text : "|")
  sub(/ +$/, "", redis)
  lines[++count] = out (redis == "" ? "|" : redis)
}
function flush() {
  if (arrived != "") line(-1, "", arrived (did == "" ? "" : " : " did))
  arrived = did = ""
}
{ sub(/^ */, "") }
/^@/ { events[++m] = $0; if (match($0, /^@[0-9]+/)) used[substr($0, 2, RLENGTH - 1) % n] = 1 }
END {
  for (k = 1; k <= m; k++) {
    e = substr(events[k], 2); rest = e; sub(/^[^ ]* ?/, "", rest); split(rest, arg, " ")
    h = e + 0
    if (e ~ /^[0-9]+<$/ || e ~ /^[0-9]+< /) { if (did == "") did = verdict[arg[2]]; else if (arg[2] == 2 || arg[2] == 4) did = did "; " verdict[arg[2]]; continue }
    if (e ~ /^R /) {
      if (arg[1] == "expires") { flush(); line(-1, "", "the lease of " hold(arg[2]) " runs out") }
      else did = (did == "" ? "" : did "; ") names(rest)
      continue
    }
    flush()
    if (e ~ /^[0-9]+>\./) line(h % n, command[arg[1]] " " hold(arg[2] == "" ? h : arg[2]) " -->", "")
    else if (e ~ /^[0-9]+>R/) arrived = "--> " command[arg[1]] " " hold(h)
    else if (e ~ /^[0-9]+\?/) line(h % n, (arg[2] == "" ? "no answer (late)" : "no answer (lost)") , "")
    else if (e ~ /^[0-9]+!/) line(h % n, rest, "")
    else if (e ~ /^T/) line(-1, "", "(" rest ")")
    else if (e ~ /^C/) line(substr(e, 2) * holders, rest, "")
    else if (e ~ /^N/) line(-1, "", "node " substr(e, 2, 1) " " rest)
    else if (e ~ /^S/) arrived = names(rest)
    else if (e ~ /^X/) broken = rest
  }
  flush()
  for (i = 0; i < n; i++) if (used[i]) head = head cell(name(i))
  print head "Redis"
  for (k = 1; k <= count; k++) print lines[k]
  print "\n=> " broken
}
