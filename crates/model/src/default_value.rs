//! Fields that are left out of JSON at their default.

/// Whether a value is its type's default: for `skip_serializing_if`.
#[must_use]
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
