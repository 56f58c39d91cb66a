//! Who sends, when nobody but the operating system can tell.

/// The user that this process runs as: `uid:name`. As with an SQS `SenderId`, only the part before the colon is an
/// identity; the name is for people, from `/etc/passwd`.
#[must_use]
pub fn operating_system_user() -> String {
    let uid = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    format!("{uid}:{}", name_of(&users, uid).unwrap_or("unknown"))
}

fn name_of(users: &str, uid: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbroken\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(name_of(users, 1000), Some("ada"));
        assert_eq!(name_of(users, 0), Some("root"));
        assert_eq!(name_of(users, 7), None);
    }

    #[test]
    fn the_sender_starts_with_the_number_of_the_user() {
        let uid = rustix::process::getuid().as_raw();
        assert!(operating_system_user().starts_with(&format!("{uid}:")));
    }
}
