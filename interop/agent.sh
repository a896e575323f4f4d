# The checks of the built-in agent, `attache agent`, with clients of others and our own. Read by `interop/run`.

# built_in NAME MODEL: our agent with its offline model, or with the scripted one over the API of `openai`, `anthropic` or
# `gemini`. It has a home of its own, and no key.
built_in() {
  local options=(--model offline)
  if [ "$2" = offline ]; then
    offline_words
  else
    scripted_model
    scripted_words
    # Only the addresses of the first have the version in them.
    local address=$model
    [ "$2" = openai ] || address=${model%/v1}
    options=(--model "$2:scripted" --base-url "$address")
  fi
  mkdir -p "$work/home/$check-$2"
  agent "$1-$2" env "${offline[@]}" HOME="$work/home/$check-$2" "$attache" agent "${options[@]}"
  script="call read_file {\"path\":\"a.txt\"}
call edit_file {\"path\":\"a.txt\",\"old_text\":\"two\",\"new_text\":\"three\"}
call write_file {\"path\":\"new.txt\",\"content\":\"four\\n\"}
call run_command {\"command\":\"echo five > ran.txt\"}"
  asks=3 refused=0
}

# With the SDKs of others.

check_agent_ts_v1() { agent_ts 1 offline && agent_ts 1 openai; }
check_agent_ts_v2() { agent_ts 2 offline && agent_ts 2 anthropic; }
agent_ts() {
  npm_peer tssdk @agentclientprotocol/sdk@2.4.0 || return 2
  fresh
  built_in "agent_ts_v$1" "$2"
  TS_SDK=$peers/npm/tssdk theirs node "$here/ts_turns.mjs" "$1" "$(kind "$2")" "$dir" "${agent[@]}" || with "$2"
}

check_agent_py() { agent_py offline && agent_py gemini; }
agent_py() {
  python_sdk || return 2
  fresh
  built_in agent_py "$1"
  theirs "$python" "$here/py_turns.py" "$(kind "$1")" "$dir" "${agent[@]}" || with "$1"
}

kind() { if [ "$1" = offline ]; then echo offline; else echo scripted; fi; }
with() { why="with $1: $why"; return 1; }

# With our own command.

check_agent_run_v1() { agent_run 1; }
check_agent_run_v2() { agent_run 2; }
agent_run() {
  local model_of
  for model_of in offline openai anthropic gemini; do
    fresh
    built_in "agent_run_v$1" "$model_of"
    { turns --protocol "$1" && again --protocol "$1"; } || { with "$model_of"; return; }
  done
}

# With acpx, which keeps a process of its own between its commands.

check_agent_acpx() { agent_acpx offline && agent_acpx openai; }
agent_acpx() {
  npm_peer acpx acpx@0.19.1 && newer_node || return 2
  built_in agent_acpx "$1"
  acpx_turns || { with "$1"; return; }
}
acpx_turns() {
  local file="$dir/a.txt" id
  fresh
  acpx allowed --approve-all exec "$script"
  acpx_wants 0 '^\[done\] end_turn' '^\[client\] fs/write_text_file' '^\[tool\] Edit .a.txt. \(completed\)' || return
  [ "$(cat "$dir/a.txt" "$dir/new.txt" "$dir/ran.txt" | tr '\n' ' ')" = "one three four five " ] ||
    { why="allowed: the files are not as they should be: $(head "$dir"/*.txt | tr '\n' ' ')"; return 1; }
  fresh
  acpx denied --approve-reads --non-interactive-permissions deny exec "$script"
  acpx_wants 5 '^\[done\] end_turn' '^\[tool\] Edit .a.txt. \(failed\)' || return
  [ "$(cat "$dir"/*.txt | tr '\n' ' ')" = "one two " ] || { why="denied: it was done after a no"; return 1; }

  # Every command but the first finds the session again, in a new process of the agent.
  acpx new sessions new
  id=$(grep -o 'sess_[0-9a-z]*' "$work/out" | head -n 1)
  acpx first --approve-all prompt "$opening
call read_file {\"path\":\"a.txt\"}"
  acpx_wants 0 '^\[done\] end_turn' '^\[tool\] Read .a.txt. \(completed\)' || return
  acpx_over || return
  acpx again --approve-all prompt "$later"
  acpx_wants 0 '^\[client\] session/(resume|load)' "$recalled" '^\[done\] end_turn' || return
  acpx list sessions list
  acpx_wants 0 "$id" || return
  acpx_over || return
  acpx mode set-mode code
  acpx_wants 0 'mode set: code' || return
  acpx option set sandbox off
  acpx_wants 0 'sandbox=off' || return
  acpx_over || return
  # The mode lasts, and with it no permission is needed for a file.
  acpx edit --approve-all --format json prompt "call read_file {\"path\":\"a.txt\"}
call edit_file {\"path\":\"a.txt\",\"old_text\":\"two\",\"new_text\":\"three\"}"
  acpx_wants 0 '"stopReason":"end_turn"' || return
  grep -q request_permission "$work/out" && { why="edit: it asked for permission in mode code"; return 1; }
  grep -q three "$file" || { why="edit: the file is as it was"; return 1; }

  acpx_cancel || return
  acpx close sessions close
  acpx_wants 0 "$id" || return
  acpx_over
}

# acpx PART ARG…: a command of acpx with `agent`.
acpx() {
  part=$1
  shift
  HOME=$work/home/acpx INTEROP_RUN=$dir/acpx timeout 90 "$peers/npm/acpx/node_modules/.bin/acpx" \
    --agent "${agent[*]}" --cwd "$dir" --ttl 1 "$@" < /dev/null > "$work/out" 2> "$work/err"
  code=$?
}
acpx_wants() { wants "$@" || { why="$part: $why"; return 1; }; }

# Waits until nothing of acpx runs any more.
acpx_over() {
  for _ in $(seq 100); do
    grep -lzxq "INTEROP_RUN=$dir/acpx" /proc/[0-9]*/environ 2> /dev/null || return 0
    sleep 0.1
  done
  why="$part: something of it still runs"
  return 1
}

# A turn that is cancelled by a second process.
acpx_cancel() {
  local talk=$work/talk pid
  rm -f "$work/out"
  (acpx talk prompt "$slowly"; cp "$work/out" "$talk.end"; exit "$code") &
  pid=$!
  for _ in $(seq 300); do
    grep -q word "$work/out" 2> /dev/null && break
    sleep 0.1
  done
  HOME=$work/home/acpx INTEROP_RUN=$dir/acpx timeout 60 "$peers/npm/acpx/node_modules/.bin/acpx" \
    --agent "${agent[*]}" --cwd "$dir" cancel < /dev/null > "$work/cancel" 2>&1
  wait "$pid"
  part=cancel
  grep -q 'cancel requested' "$work/cancel" || { why="cancel: $(tail -n 1 "$work/cancel")"; return 1; }
  grep -q '^\[done\] cancelled' "$talk.end" || { why="cancel: $(tail -n 1 "$talk.end")"; return 1; }
}
