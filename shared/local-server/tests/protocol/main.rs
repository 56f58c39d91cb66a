//! The server, over a socket.
