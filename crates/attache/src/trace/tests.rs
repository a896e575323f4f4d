use std::{fs, sync::mpsc};

use super::*;

/// Where a tap writes in tests.
struct Lines(mpsc::Sender<String>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(String::from_utf8(bytes.to_vec()).unwrap()).unwrap();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines that a tap wrote, without their times and with single quotes.
fn trace(use_tap: impl FnOnce(&Tap)) -> Vec<String> {
    let (sender, lines) = mpsc::channel();
    let tap = Tap::new(Lines(sender));
    use_tap(&tap);
    assert_eq!(tap.failures(), 0);
    drop(tap);
    let line = |line: String| {
        let (start, rest) = line.split_at(r#"{"time":"2026-11-15T09:30:00.125Z","#.len());
        assert!(start.starts_with(r#"{"time":"2"#) && start.ends_with(r#"Z","#), "{start}");
        rest.trim_end().replace('"', "'")
    };
    lines.into_iter().map(line).collect()
}

/// Checks how a message is written down. Single quotes stand for double ones.
#[track_caller]
fn check(message: &str, expected: &str) {
    let said = trace(|tap| tap.received(&message.replace('\'', "\"")));
    assert_eq!(said, [format!("'dir':'in','message':{expected}}}")]);
}

#[test]
fn what_is_no_secret_is_kept() {
    for message in [
        "{'jsonrpc':'2.0','id':1.50e3,'method':'x','params':[true,null,{}, []]}".replace(", ", ","),
        "{'usage':{'totalTokens':5,'inputTokens':1},'text':'my password is …'}".into(),
        "{'a\\\\'b':'\\n'}".replace("\\\\'", "\\u0022"),
        "[1,2]".into(),
    ] {
        check(&message, &message.replace("\\u0022", "\\'"));
    }
}

#[test]
fn secrets_are_left_out() {
    // session/new, v1 and v2.
    check(
        "{'params':{'cwd':'/p','mcpServers':[{'name':'s','command':'/s','args':['-x'],'env':[{'name':'KEY','value':'sk-1'}]},{'type':'http','name':'h','url':'https://h','headers':[{'name':'Authorization','value':'Bearer x','_meta':{'a':'b'}}]}]}}",
        "{'params':{'cwd':'/p','mcpServers':[{'name':'s','command':'/s','args':['…'],'env':[{'name':'KEY','value':'…'}]},{'type':'http','name':'h','url':'https://h','headers':[{'name':'Authorization','value':'…','_meta':'…'}]}]}}",
    );
    // Addresses of MCP servers have tokens in any part, and so have arguments of their programs.
    check(
        "{'mcpServers':[{'type':'http','name':'h','url':'https://u:p@h:1/s/tok/mcp?key=k#f','x':'tok','_meta':{'y':'tok'}},{'name':'s','command':'c','args':['--token','tok']}]}",
        "{'mcpServers':[{'type':'http','name':'h','url':'https://h:1/…','x':'…','_meta':'…'},{'name':'s','command':'c','args':['…','…']}]}",
    );
    check(
        "{'mcpServers':{'h':{'url':'tok','y':['tok']},'i':'tok','j':{'url':'http://u:p/w@h'}}}",
        "{'mcpServers':{'h':{'url':'…','y':['…']},'i':'…','j':{'url':'http://…'}}}",
    );
    // Other addresses keep their path.
    check(
        "{'url':'https://u:p@h/a?code=c#t','serverUrl':'https://h/a','baseUrl':'h?k','uri':'file:///a?b','URL':1}",
        "{'url':'https://…@h/a?…','serverUrl':'https://h/a','baseUrl':'h?…','uri':'file:///a?…','URL':1}",
    );
    // terminal/create.
    check(
        "{'method':'terminal/create','params':{'command':'make','env':[{'value':'v','name':'N'}],'cwd':null}}",
        "{'method':'terminal/create','params':{'command':'make','env':[{'value':'…','name':'N'}],'cwd':null}}",
    );
    // providers/set.
    check(
        "{'method':'providers/set','params':{'providerId':'p','apiType':'openai','baseUrl':'https://b','headers':{'X-Key':'k','n':1,'gone':null}}}",
        "{'method':'providers/set','params':{'providerId':'p','apiType':'openai','baseUrl':'https://b','headers':{'X-Key':'…','n':'…','gone':null}}}",
    );
    // A way to log in with a terminal.
    check(
        "{'authMethods':[{'type':'terminal','id':'t','name':'T','args':[],'env':{'TOKEN':'x','MODE':'y'}}]}",
        "{'authMethods':[{'type':'terminal','id':'t','name':'T','args':[],'env':{'TOKEN':'…','MODE':'…'}}]}",
    );
    // Anywhere, under any spelling, whatever the value is.
    check(
        "{'_meta':{'x':{'api_key':'a','Authorization':{'b':1},'refreshToken':['c'],'client-secret':1,'OPENAI_API_KEY':'d','password':null,'tokens':3}}}",
        "{'_meta':{'x':{'api_key':'…','Authorization':'…','refreshToken':'…','client-secret':'…','OPENAI_API_KEY':'…','password':null,'tokens':3}}}",
    );
    check(
        "{'rawInput':{'deep':[[{'set_cookie':'a'}]],'env':['A=b']}}",
        "{'rawInput':{'deep':[[{'set_cookie':'…'}]],'env':['…']}}",
    );
    // A name that is spelled with an escape is the same name.
    check("{'to\\u006ben':'x'}", "{'token':'…'}");
}

#[test]
fn secrets_are_left_out_wherever_a_peer_puts_them() {
    // What an agent answered to `initialize`: fields of its own.
    check(
        "{'_meta':{'auth':'Bearer sk-META1','httpHeaders':{'X-A':'sk-META2'},'environment':{'FOO':'x'},'endpoint':'https://user:x@host/x?key=y','config':'{\\'apiKey\\':\\'x\\'}','pwd':'x'}}",
        "{'_meta':{'auth':'…','httpHeaders':{'X-A':'…'},'environment':{'FOO':'…'},'endpoint':'https://…@host/x?…','config':'{\\'apiKey\\':\\'…\\'}','pwd':'…'}}",
    );
    check(
        "{'url':'https://u:sk-ME/TA8@host/','uri':'https://u:sk?META9@host/','args':['--token','x','-v','--api-key=x'],'sk-KEYMETA11':1,'envVars':['A=x']}",
        "{'url':'https://…@host/','uri':'https://…@host/','args':['--token','…','-v','--api-key=…'],'…':1,'envVars':['…']}",
    );
    check(
        "{'apiKeyValue':'x','jwt':'x','signature':'x','Env':{'A':'x'},'mcp_servers':{'x':{'args':['x']}},'URL':'https://u:x@h/p?t=x','href':'https://u:x@h'}",
        "{'apiKeyValue':'…','jwt':'…','signature':'…','Env':{'A':'…'},'mcp_servers':{'x':{'args':['…']}},'URL':'https://…@h/p?…','href':'https://…@h'}",
    );
    check(
        "{'list':[{'name':'API_KEY','value':'x'},{'name':'mode','value':'y'}],'auth':{'type':'basic','user':{'token':1},'terminal':{}},'flags':{'secret':true}}",
        "{'list':[{'name':'API_KEY','value':'…'},{'name':'mode','value':'y'}],'auth':{'type':'…','user':{'token':'…'},'terminal':{}},'flags':{'secret':true}}",
    );
    // In texts, however they are escaped.
    check(
        "{'prompt':[{'type':'text','text':'use\\nsk-ant-0123456789 or\\tpassword=x'}],'command':'curl --token x https://u:p@h'}",
        "{'prompt':[{'type':'text','text':'use\\n… or\\tpassword=…'}],'command':'curl --token … https://…@h'}",
    );
}

#[test]
fn what_the_protocol_needs_is_kept() {
    for message in [
        "{'params':{'sessionId':'sess-5f3c09abdeadbeef5f3c09ab','toolCallId':'call_5f3c09ab','messageId':'m','cursor':'eyJhIjoxfQ','nextCursor':'abc=='}}",
        "{'usage':{'inputTokens':1,'totalTokens':2,'maxTokens':3,'cachedReadTokens':4,'tokenLimit':5}}",
        "{'authMethods':[{'id':'login','name':'Log in','description':'with a token'}],'agentCapabilities':{'auth':{'logout':{}},'loadSession':true}}",
        "{'content':{'type':'text','text':'a line: {not JSON}, \\u00e9 and more'},'data':'{\\n  1 }'}",
        "{'mode':'{\\'a\\': [1,  2]}'}",
        "{'requestedSchema':{'type':'object','properties':{'password':{'type':'string','title':'Password'}}}}",
    ] {
        check(message, message);
    }
}

#[test]
fn messages_for_programs_keep_their_texts() {
    let (sender, lines) = mpsc::channel();
    Tap::messages(Lines(sender)).received(r#"{"text":"https://h/?q=1","token":"x"}"#);
    assert_eq!(lines.iter().collect::<String>(), "{\"text\":\"https://h/?q=1\",\"token\":\"…\"}\n");
}

#[test]
fn what_is_no_message_is_counted() {
    let lines = trace(|tap| {
        tap.received("secret banner");
        tap.received("{\"token\":\"x\"");
        tap.received("  ");
        tap.received(&"[".repeat(1000));
        tap.sent(b"\xff\xfe\n");
    });
    assert_eq!(
        lines,
        ["'dir':'in','junk':13}", "'dir':'in','junk':12}", "'dir':'in','junk':1000}", "'dir':'out','junk':2}"]
    );
}

#[test]
fn what_was_sent_is_taken_out_of_its_frames() {
    let expected = ["'dir':'out','message':{'a':1}}", "'dir':'out','message':{'b':2}}"];
    assert_eq!(trace(|tap| tap.sent(b"{\"a\":1}\n{\"b\":2}\n")), expected);
    let headed = b"Content-Length: 7\r\n\r\n{\"a\":1}Content-Length: 8\r\n\r\n{\"b\":\n2}";
    assert_eq!(trace(|tap| tap.sent(headed)), expected);
}

#[test]
fn a_trace_that_cannot_be_written_is_counted() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let tap = Tap::new(Full);
    tap.received("{}");
    tap.clone().sent(b"{}\n{}\n");
    assert_eq!(tap.failures(), 3);
    assert!(Tap::file("/nowhere/at/all").is_err());
}

#[test]
fn a_file_is_appended_to_and_private() {
    let path = std::env::temp_dir().join(format!("attache-tap-{}.jsonl", std::process::id()));
    let _ = fs::remove_file(&path);
    Tap::file(&path).unwrap().received("{}");
    Tap::file(&path).unwrap().sent(b"{}\n");
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
    }
    fs::remove_file(&path).unwrap();
}
