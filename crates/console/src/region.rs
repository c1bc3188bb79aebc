//! Parts of a page that change while it is looked at.

use maud::{Markup, Render, html};

/// An element with an id, which a live page replaces when it has changed. Each `details` in it has an id as well, by which the script
/// knows whether it was open.
pub(crate) struct Region {
    pub(crate) id: &'static str,
    class: &'static str,
    body: Markup,
}

impl Region {
    pub(crate) const fn new(id: &'static str, class: &'static str, body: Markup) -> Self {
        Self { id, class, body }
    }
}

impl Render for Region {
    fn render(&self) -> Markup {
        html! { section id=(self.id) class=(self.class) data-live { (self.body) } }
    }
}
