use crate::calls::for_each_call;

macro_rules! is_write {
    (writes) => {
        true
    };
    (reads) => {
        false
    };
}

macro_rules! operations {
    ($($part:ident { $($call:ident($($argument:ident: $kind:ty),*) -> $answer:ty, $operation:ident, $effect:ident;)* })*) => {
        /// The calls of the contract, by name: for metrics and for plans of faults.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Operation { $($($operation,)*)* }

        impl Operation {
            /// All of them, in their order.
            pub const ALL: [Self; Self::COUNT] = [$($(Self::$operation,)*)*];

            /// Their names.
            pub const NAMES: [&'static str; Self::COUNT] = [$($(stringify!($call),)*)*];

            /// How many there are.
            pub const COUNT: usize = [$($(stringify!($call),)*)*].len();

            pub const fn as_str(self) -> &'static str {
                match self {
                    $($(Self::$operation => stringify!($call),)*)*
                }
            }

            /// Whether it changes something: only then can its outcome be unknown.
            pub const fn writes(self) -> bool {
                match self {
                    $($(Self::$operation => is_write!($effect),)*)*
                }
            }
        }
    };
}

for_each_call!(operations);
