//! Keys and positions as texts, which MongoDB compares byte by byte. Bytes it would compare by their length first.

use store_partitioned::Partition;

/// Between a partition and what follows it. Partitions have letters, digits and hyphens only, so that none begins with another and this.
const SEPARATOR: char = '/';
/// The next character after the separator: no key of the partition comes after it.
const AFTER_SEPARATOR: char = '0';
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The text of a key or position in a partition.
pub fn text(partition: &Partition, bytes: &[u8]) -> String {
    let mut text = String::with_capacity(partition.as_str().len() + 1 + 2 * bytes.len());
    text.push_str(partition.as_str());
    text.push(SEPARATOR);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// Before this one come all texts of a partition, and none after it.
pub fn end(partition: &Partition) -> String {
    format!("{partition}{AFTER_SEPARATOR}")
}

/// The bytes of a text in a partition; `None` where it is none.
pub fn bytes(partition: &Partition, text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix(partition.as_str())?.strip_prefix(SEPARATOR)?.as_bytes();
    let value = |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(value(high)? << 4 | value(low)?),
        _ => None,
    };
    digits.chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_in_the_order_of_their_bytes() {
        let partition = Partition::new("timers-1");
        let sorted: [&[u8]; 8] = [&[], &[0], &[0, 0], &[0, 255], &[1], &[127, 9], &[128], &[255, 255, 255]];
        let texts: Vec<String> = sorted.iter().map(|bytes| text(&partition, bytes)).collect();
        assert!(texts.is_sorted());
        assert!(texts.iter().all(|text| *text < end(&partition)));
        assert!(texts.iter().zip(sorted).all(|(text, sorted)| bytes(&partition, text).as_deref() == Some(sorted)));
    }

    #[test]
    fn no_partition_reaches_into_another() {
        let (one, other) = (Partition::new("timers-1"), Partition::new("timers-17"));
        assert!(text(&other, &[]) > end(&one) || text(&other, &[255]) < text(&one, &[]));
        assert_eq!(bytes(&one, &text(&other, &[1])), None);
    }

    #[test]
    fn what_is_no_key_is_none() {
        let partition = Partition::new("keys");
        for text in ["keys", "keys/0", "keys/0g", "other/00"] {
            assert_eq!(bytes(&partition, text), None, "{text}");
        }
    }
}
