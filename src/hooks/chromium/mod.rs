//! One browser for the pages of a crawl, with one tab for each page.
//!
//! `chromium_launch` runs the browser in its own unit and serves it on a socket. `chromium_tab`
//! loads the page of a snapshot once. The hooks that save the page attach to that tab. `recorder`
//! keeps what the page requests meanwhile.
//!
//! `arrival` decides when the page of a tab is loaded, settled, gone elsewhere and
//! ready to be saved; its module documentation has the definitions. It is a state machine without I/O:
//! events of the tab and the time in (`tab/events.rs` translates those of the DevTools protocol), steps
//! out (`tab/load.rs` carries them out). `tab/answers.rs` keeps what the server answered, for hooks
//! that would otherwise request it again. The page's clock is virtual time until the page is settled,
//! and virtual time at the pace of real time afterwards: Chromium cannot end virtual time, and a page
//! whose clock stands still loads no images. `reveal/` then gives the page the first events of a reader
//! (`reveal/interaction.rs`) and scrolls through it and its lists (`reveal/lists.js`), and asks the
//! arrival to let it settle again in between, after `consent/` has removed walls that cover it:
//! `walls.js` finds them by position, words and known markup, which `phrases.json` lists by language.
//! If it finds no button, `rules.rs` runs the rules of autoconsent with its library (files of the
//! package, which `packaging/lib/autoconsent.sh` fetches), driven by `rules.js`. The hooks that save
//! the page attach to the tab with sessions of their own (`view/`).
//!
//! `recorder/` keeps what the page requests, with a connection of its own, whose messages it reads one
//! by one (`cdp/tap.rs`): the browser waits for a recorder that is slow. `requests.rs` is a state
//! machine without I/O: messages of the browser in, calls and bytes of bodies out (`calls.rs`);
//! `flight.rs` has the stages of one request and what moves it, `targets.rs` the frames and workers
//! from which requests come. Bodies wait in files without a name (`spool.rs`) until a thread writes
//! them (`writer.rs`), so that neither a large one nor compression holds the page up. All that it
//! writes passes through `masks.rs`, which replaces values of the persona's cookies. `media.rs` lets
//! the page fetch what it has not read of audio and video, and what the browser has not held. The relay
//! (`browser/relay.rs`) reads no further while one of its clients has 4 MiB unread, and disconnects it
//! after 10 s. `browser/world.rs` makes `Math.random` repeat its numbers in a replay. `view/look.rs`
//! reads text and picture of a page that is ready, for a recording and for the replay that is compared
//! with it.

pub(crate) mod arrival;
pub(crate) mod browser;
pub(crate) mod cdp;
pub(crate) mod consent;
pub mod recorder;
pub(crate) mod reveal;
pub mod tab;
pub(crate) mod view;
