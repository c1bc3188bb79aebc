//! The style, the script and the icon: parts of the program, served under names that change with their content.

use axum::{
    extract::Path,
    response::{IntoResponse, Response},
};
use http::header;

use crate::problem::Problem;

const STYLE: &str = include_str!("../assets/console.css");
const SCRIPT: &str = include_str!("../assets/console.js");
const ICON: &str = include_str!("../assets/icon.svg");
const LONG: &str = "public, max-age=31536000, immutable";

/// One file.
pub(crate) struct Asset {
    name: &'static str,
    content_type: &'static str,
    text: &'static str,
}

pub(crate) const STYLE_FILE: Asset = Asset { name: "console.css", content_type: "text/css; charset=utf-8", text: STYLE };
pub(crate) const SCRIPT_FILE: Asset = Asset { name: "console.js", content_type: "text/javascript; charset=utf-8", text: SCRIPT };
pub(crate) const ICON_FILE: Asset = Asset { name: "icon.svg", content_type: "image/svg+xml", text: ICON };

impl Asset {
    /// Its address, which is another one for other content.
    pub(crate) fn link(&self, base_path: &str) -> String {
        format!("{base_path}/console/assets/{}?{:08x}", self.name, fnv(self.text))
    }
}

/// FNV-1a: tells versions of a file apart, no more.
const fn fnv(text: &str) -> u32 {
    let (bytes, mut hash, mut at) = (text.as_bytes(), 0x811c_9dc5_u32, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash
}

pub(crate) async fn serve(Path(name): Path<String>) -> Result<Response, Problem> {
    let asset = [STYLE_FILE, SCRIPT_FILE, ICON_FILE].into_iter().find(|asset| asset.name == name).ok_or(Problem::NoSuchPage)?;
    Ok(([(header::CONTENT_TYPE, asset.content_type), (header::CACHE_CONTROL, LONG)], asset.text).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_keep_their_budgets() {
        assert!(SCRIPT.len() < 15 * 1024, "{}", SCRIPT.len());
        assert!(STYLE.len() < 25 * 1024, "{}", STYLE.len());
    }

    #[test]
    fn a_file_has_a_name_of_its_own_for_each_content() {
        let link = STYLE_FILE.link("/x");
        assert!(link.starts_with("/x/console/assets/console.css?") && link != SCRIPT_FILE.link("/x"), "{link}");
    }
}
