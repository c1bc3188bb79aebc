//! Columns as bytes of an item. Every write of an item is paid by its size, whichever attributes it changes, and no item has more than
//! 400 KB: so a column that is not small is compressed, where that helps. The first byte says whether it was.

use std::io::{Read, Write};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use store::StoreResult;

use crate::failure::corrupt;

const PLAIN: u8 = 0;
const DEFLATED: u8 = 1;
/// Shorter texts gain little.
const COMPRESSED_FROM: usize = 512;

pub fn encode(bytes: &[u8]) -> Vec<u8> {
    let deflated = if bytes.len() < COMPRESSED_FROM { None } else { deflate(bytes) };
    deflated.filter(|deflated| deflated.len() <= bytes.len()).unwrap_or_else(|| [&[PLAIN], bytes].concat())
}

fn deflate(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(vec![DEFLATED], Compression::fast());
    // Into memory, where nothing fails.
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

pub fn decode(stored: &[u8]) -> StoreResult<Vec<u8>> {
    match stored.split_first() {
        None => Ok(Vec::new()),
        Some((&PLAIN, bytes)) => Ok(bytes.to_vec()),
        Some((&DEFLATED, deflated)) => {
            let mut bytes = Vec::new();
            DeflateDecoder::new(deflated).read_to_end(&mut bytes).map_err(|_| corrupt("a column that cannot be unpacked"))?;
            Ok(bytes)
        }
        Some(_) => Err(corrupt("a column of an unknown form")),
    }
}

#[cfg(test)]
mod tests {
    use domain::limits;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};

    use super::*;
    use crate::write::COLUMNS_BYTES_MAX;

    #[test]
    fn columns_come_back() {
        for column in [Vec::new(), b"short".to_vec(), b"long ".repeat(1_000), (0..=255).cycle().take(5_000).collect()] {
            let stored = encode(&column);
            assert!(stored.len() <= column.len() + 1);
            assert_eq!(decode(&stored).unwrap(), column);
        }
        assert!(encode(&b"long ".repeat(1_000)).len() < 100);
    }

    #[test]
    fn what_is_no_column_is_corrupt() {
        assert_eq!(decode(&[]).unwrap(), Vec::<u8>::new());
        for stored in [&[9, 9][..], &[DEFLATED, 0xff, 0xff]] {
            assert_eq!(decode(stored).unwrap_err().kind(), "corrupt");
        }
    }

    /// The most that a client can send, made of what compresses worst, and kept as JSON within JSON.
    #[test]
    fn the_largest_timer_fits_into_an_item() {
        let mut random = SmallRng::seed_from_u64(7);
        let bytes =
            limits::PAYLOAD_BYTES_MAX + limits::METADATA_BYTES_MAX + limits::HEADERS_BYTES_MAX + 2 * limits::FOLLOW_UP_BYTES_MAX;
        let text: String = (0..bytes).map(|_| char::from(random.random_range(b' '..=b'~'))).collect();
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let body = quoted(&quoted(&text));
        assert!(body.len() > text.len());
        let stored = encode(body.as_bytes()).len();
        assert!(stored < COLUMNS_BYTES_MAX, "{bytes} bytes became {stored}");
    }
}
