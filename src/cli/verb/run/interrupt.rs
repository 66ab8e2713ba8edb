//! Ctrl-C as a pure machine: the first one interrupts the hooks that are waited for and asks what
//! next, the second one gives up, the third one does not even wait for the end.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// Ctrl-C.
    Signal,
    /// What was typed, without its line feed.
    Line(&'a str),
    /// Nobody will type anything any more.
    NoTerminal,
    /// The interruption did not get through.
    Failed,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// End the hooks and ask; [`Input::Line`] answers.
    Interrupt,
    /// Ask once more: the answer was none.
    AskAgain,
    /// Go on with the next hooks.
    Skip,
    /// Run the interrupted hooks once more.
    Retry,
    /// Give the crawl up and wait for the end of what runs.
    Abort,
    /// Leave at once.
    Leave,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Working,
    Asking,
    Aborting,
}

/// See the module's description.
#[derive(Debug)]
pub struct Interrupts {
    state: State,
    /// There is a terminal to ask on.
    terminal: bool,
}

impl Interrupts {
    pub fn new(terminal: bool) -> Interrupts {
        let state = State::default();
        Interrupts { state, terminal }
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn handle(&mut self, input: Input<'_>) -> Option<Step> {
        use State::*;
        let (state, step) = match (self.state, input) {
            (Working, Input::Signal) if self.terminal => (Asking, Some(Step::Interrupt)),
            (Working | Asking, Input::Signal) => (Aborting, Some(Step::Abort)),
            (Aborting, Input::Signal) => (Aborting, Some(Step::Leave)),
            (Asking, Input::Line(line)) => match line.trim().to_ascii_lowercase().as_str() {
                "" | "s" | "skip" => (Working, Some(Step::Skip)),
                "r" | "retry" => (Working, Some(Step::Retry)),
                "a" | "abort" => (Aborting, Some(Step::Abort)),
                _ => (Asking, Some(Step::AskAgain)),
            },
            (Asking, Input::NoTerminal) => (Aborting, Some(Step::Abort)),
            (Asking, Input::Failed) => (Working, None),
            (state, _) => (state, None),
        };
        self.state = state;
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use State::*;

    /// Every state by every input, with a terminal.
    #[test]
    fn the_whole_table() {
        let inputs = [
            Input::Signal,
            Input::Line(""),
            Input::Line(" R "),
            Input::Line("a"),
            Input::Line("?"),
            Input::NoTerminal,
            Input::Failed,
        ];
        let none = |state| (state, None);
        let (skip, retry) = ((Working, Some(Step::Skip)), (Working, Some(Step::Retry)));
        let abort = (Aborting, Some(Step::Abort));
        let working = none(Working);
        let table = [
            (
                Working,
                [
                    (Asking, Some(Step::Interrupt)),
                    working,
                    working,
                    working,
                    working,
                    working,
                    working,
                ],
            ),
            (
                Asking,
                [
                    abort,
                    skip,
                    retry,
                    abort,
                    (Asking, Some(Step::AskAgain)),
                    abort,
                    working,
                ],
            ),
            (
                Aborting,
                [
                    (Aborting, Some(Step::Leave)),
                    none(Aborting),
                    none(Aborting),
                    none(Aborting),
                    none(Aborting),
                    none(Aborting),
                    none(Aborting),
                ],
            ),
        ];
        for (state, row) in table {
            for (input, want) in inputs.into_iter().zip(row) {
                let mut interrupts = Interrupts {
                    state,
                    terminal: true,
                };
                let step = interrupts.handle(input);
                assert_eq!((interrupts.state(), step), want, "{state:?} + {input:?}");
            }
        }
    }

    #[test]
    fn without_a_terminal_the_first_one_gives_up() {
        let mut interrupts = Interrupts::new(false);
        assert_eq!(interrupts.handle(Input::Signal), Some(Step::Abort));
        assert_eq!(interrupts.handle(Input::Signal), Some(Step::Leave));
    }
}
