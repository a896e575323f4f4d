//! A proxy before the database, which cuts connections where tests want it to.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Passes bytes on, as long as it is told to.
pub struct Proxy {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    streams: Mutex<Vec<TcpStream>>,
    /// Nobody gets through.
    is_closed: AtomicBool,
    /// How many answers of the database are passed on before all is cut. Negative: all of them.
    answers: AtomicI64,
}

impl Proxy {
    /// A proxy for a port of this machine.
    pub fn new(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State { answers: AtomicI64::new(-1), ..State::default() });
        let shared = state.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.is_closed.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
                let mut streams = shared.streams.lock().unwrap();
                // Whoever closes it holds the lock: a connection that began before is cut, or is not passed on.
                if shared.is_closed.load(Ordering::SeqCst) {
                    continue;
                }
                streams.retain(|stream| stream.peer_addr().is_ok());
                streams.extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
                drop(streams);
                pass(client.try_clone().unwrap(), server.try_clone().unwrap(), shared.clone(), false);
                pass(server, client, shared.clone(), true);
            }
        });
        Proxy { port, state }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts all connections that there are.
    pub fn cut(&self) {
        for stream in self.state.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets nobody through, and cuts those who are.
    pub fn close(&self) {
        let mut streams = self.state.streams.lock().unwrap();
        self.state.is_closed.store(true, Ordering::SeqCst);
        for stream in streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub fn open(&self) {
        self.state.is_closed.store(false, Ordering::SeqCst);
    }

    /// Cuts all connections instead of passing on an answer of the database: what was asked for is done, and nobody hears
    /// of it.
    pub fn cut_at_answer(&self, after: i64) {
        self.state.answers.store(after, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, state: Arc<State>, is_answer: bool) {
    thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if is_answer
                && state.answers.load(Ordering::SeqCst) >= 0
                && state.answers.fetch_sub(1, Ordering::SeqCst) == 0
            {
                for stream in state.streams.lock().unwrap().drain(..) {
                    let _ = stream.shutdown(Shutdown::Both);
                }
                break;
            }
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
        // So that a server which was cut off is not asked again at once.
        thread::sleep(Duration::from_millis(1));
    });
}
