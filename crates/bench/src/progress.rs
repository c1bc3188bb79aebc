use crate::record::{Held, Run};

/// What is reported while a campaign runs.
#[derive(Debug)]
pub enum Note<'a> {
    Doing(&'a str),
    Done(&'a Run),
    Held(&'a Held),
}

pub type Tell<'a> = &'a mut dyn FnMut(Note<'_>);
