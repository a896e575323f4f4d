# The checks over HTTP and WebSocket: `attache run` on servers of others, and clients of others on `attache serve`. Read by
# `interop/run`.

token=example-token

# served SCHEME COMMAND…: starts a server, which finds its port in PORT; sets `address` when it listens.
served() {
  local scheme=$1 port
  shift
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  PORT=$port "$@" > "$work/server" 2>&1 &
  server_pid=$!
  for _ in $(seq 100); do
    (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null && { address=$scheme://127.0.0.1:$port/acp; return; }
    kill -0 "$server_pid" 2> /dev/null || break
    sleep 0.1
  done
  why="the server does not listen: $(tail -n 2 "$work/server" | tr '\n' ' ')"
  return 1
}

stop_server() {
  [ -n "$server_pid" ] || return 0
  kill "$server_pid" 2> /dev/null
  wait "$server_pid" 2> /dev/null
  server_pid='' address=''
}

# serve SCHEME [OPTION…]: `attache serve` with its offline model, which works where the check has its files.
serve() {
  local home=$work/home/$check-serve
  mkdir -p "$home/.config/attache/serve"
  printf 'ts %s\n' "$(printf %s "$token" | sha256sum | cut -d ' ' -f 1)" > "$home/.config/attache/serve/tokens"
  chmod -R go= "$home/.config"
  served "$1" env "${offline[@]}" HOME="$home" ATTACHE_MODEL=offline \
    bash -c 'exec "$0" serve --listen "127.0.0.1:$PORT" --dir "$@"' "$attache" "$dir" "${@:2}"
}

# HTTP/2 with TLS: node's own modules and curl with `attache serve`, and `attache run` with a server of node's.

check_run_h2_tls() {
  local options certificates=$work/home/$check-serve/.config/attache/serve direct
  serve https --tls-self-signed || return
  address=${address/127.0.0.1/localhost}
  options=(CERTIFICATE="$certificates/certificate.pem" KEY="$certificates/key.pem" TOKEN="$token"
    FINGERPRINT="$(sed -n 's/.*"fingerprint":"\([^"]*\)".*/\1/p' "$work/server")")
  theirs env "${options[@]}" node "$here/h2_tls.mjs" "$address" "$dir" || return
  # curl, if it was built with HTTP/2.
  if curl --version | grep -q '^Features:.*HTTP2'; then
    curl --silent --show-error --http2 --cacert "$certificates/certificate.pem" --noproxy '*' --max-time 30 \
      --header "Authorization: Bearer $token" --json \
      '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}' \
      --write-out '\nHTTP/%{http_version} %{http_code} TLS %{ssl_verify_result}\n' "$address" > "$work/out" 2> "$work/err"
    code=$?
    wants 0 '"protocolVersion":1' '^HTTP/2 200 TLS 0$' || return
  fi
  # The other way round: a server that speaks nothing but HTTP/2 with TLS, before one that speaks neither.
  stop_server
  serve http || return
  direct=$address model_server=$server_pid
  served https bash -c 'PROXY=$PORT exec env "${@:3}" node "$1" "$2"' - "$here/h2_tls.mjs" "$direct" "${options[@]}"
  if [ -n "$address" ]; then
    part=named
    started agents add h2 --url "$address" --fingerprint "${options[3]#FINGERPRINT=}" --dir "$dir"
    ATTACHE_TOKEN=$token started run --agent h2 --cwd "$dir" -o json "read a.txt" &&
      result 0 'r["status"] == "done"' '"two" in r["text"]'
  else
    false
  fi
  local done=$?
  stop_server
  server_pid=$model_server
  [ "$done" = 0 ] || return 1
  grep -qE '^h2 ([5-9]|[1-9][0-9]+)$' "$work/server" || { why="no request over HTTP/2: $(cat "$work/server")"; return 1; }
}

# The examples of the TypeScript SDK 1.9.0.

check_ts_http_server() { ts_server http; }
check_ts_ws_server() { ts_server ws; }
ts_server() {
  ts_example http-server || return 2
  served "$1" "${agent[@]}" || return
  ATTACHE_TOKEN=$token prompted first hello
  result 0 'r["status"] == "done" and r["stop_reason"] == "end_turn"' '"Hello from the ACP HTTP/WebSocket example server" in r["text"]' || return
  # On another connection the session is loaded, with its history.
  session=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["session_id"])' < "$work/out")
  ATTACHE_TOKEN=$token prompted resume --resume "$session" hello
  result 0 'r["session_id"] == "'"$session"'"' '"Hello from the ACP HTTP/WebSocket example server" in r["text"]' || return
  # It refuses who has another token: over WebSocket without an answer that says why.
  local expected=4
  [ "$1" = ws ] && expected=9
  ATTACHE_TOKEN=another prompted refused hello
  [ "$code" = "$expected" ] || { why="with a wrong token: exit code $code instead of $expected: $(tail -n 2 "$work/err" | tr '\n' ' ')"; return 1; }
}

check_ts_http_client() { ts_example_client http http-client; }
check_ts_ws_client() { ts_example_client ws ws-client; }
ts_example_client() {
  ts_example "$2" || return 2
  serve "$1" || return
  (cd "$dir" && ACP_HTTP_URL=$address ACP_WS_URL=$address timeout 60 "${agent[@]}") > "$work/out" 2> "$work/err"
  code=$?
  wants 0 'not a language model' '^Done: end_turn' '^Saved session .*loadSession=true'
}

# Whole turns with the TypeScript SDK 2.4.0.

check_run_ts_http() { run_ts http; }
check_run_ts_ws() { run_ts ws; }
run_ts() {
  local version
  ts_over_http || return 2
  for version in 1 2; do
    fresh
    served "$1" env "TS_SDK=$peers/npm/tssdkhttp" node "$here/ts_agent.mjs" || return
    worker_script
    turns --protocol "$version" || { with "version $version"; return; }
    stop_server
  done
}

check_serve_ts_http() { serve_ts http; }
check_serve_ts_ws() { serve_ts ws; }
serve_ts() {
  local version
  ts_over_http || return 2
  serve "$1" || return
  for version in 1 2; do
    fresh
    TS_SDK=$peers/npm/tssdkhttp TOKEN=$token theirs node "$here/ts_turns.mjs" "$version" offline "$dir" "$address" ||
      { with "version $version"; return; }
  done
}

ts_over_http() { npm_peer tssdkhttp @agentclientprotocol/sdk@2.4.0 ws@8; }

# Whole turns with the Python SDK 0.12.1.

check_run_py_http() { run_py http; }
check_run_py_ws() { run_py ws; }
run_py() {
  python_over_http || return 2
  served "$1" "$python" "$here/py_agent.py" || return
  worker_script
  turns
}

check_serve_py_http() { serve_py http; }
check_serve_py_ws() { serve_py ws; }
serve_py() {
  python_over_http || return 2
  serve "$1" || return
  TOKEN=$token theirs "$python" "$here/py_turns.py" offline "$dir" "$address"
}

python_over_http() {
  python=$peers/py-sdk-http/bin/python
  [ -x "$python" ] && return
  python3 -m venv "$peers/py-sdk-http" &&
    "$python" -m pip install --quiet 'agent-client-protocol[http]==0.12.1' hypercorn==0.18.0 > "$work/install" 2>&1
}
