//! The key of a state directory: whoever can read its file may call, and nobody else.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::json;

/// Name of the file with the key.
pub const SECRET_FILE: &str = "aws.secret";
/// Name of the file to source.
pub const ENV_FILE: &str = "aws.env";
/// Region that every call has to name.
pub const REGION: &str = "us-east-1";

/// An access key.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Its public part, twenty letters and digits as AWS's own have.
    pub key_id: String,
    /// Its secret.
    pub secret: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

/// A directory that can't hold a key; one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CredentialsError(String);

/// Creates a state directory that is for this user alone; one that is there stays as it is.
///
/// # Errors
/// A sentence when it can't be created.
pub fn create_private(dir: &Path) -> Result<(), CredentialsError> {
    let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    created.map_err(|error| failed("created", dir, &error))
}

impl Credentials {
    /// The key of a state directory, made when there is none.
    ///
    /// # Errors
    /// A sentence when the directory is another user's or open to others, or the file can't be used.
    pub fn of(dir: &Path) -> Result<Self, CredentialsError> {
        check(dir, "directory", 0o002, &format!("chmod o-w {}", dir.display()))?;
        let file = dir.join(SECRET_FILE);
        if file.exists() {
            check(&file, "file", 0o077, &format!("chmod 600 {}", file.display()))?;
            return Self::read(&file);
        }
        let credentials = Self::random();
        let text = json!({ "accessKeyId": credentials.key_id, "secretAccessKey": credentials.secret });
        put_private(&file, &format!("{text}\n")).map_err(|error| failed("written", &file, &error))?;
        Ok(credentials)
    }

    fn read(file: &Path) -> Result<Self, CredentialsError> {
        let text = fs::read_to_string(file).map_err(|error| failed("read", file, &error))?;
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let member = |name: &str| value.get(name).and_then(serde_json::Value::as_str).map(str::to_owned);
        member("accessKeyId").zip(member("secretAccessKey")).map(|(key_id, secret)| Self { key_id, secret }).ok_or_else(
            || CredentialsError(format!("`{}` holds no key: remove it, and a new one is made", file.display())),
        )
    }

    fn random() -> Self {
        let word = || uuid::Uuid::new_v4().simple().to_string();
        let id: String = word().to_uppercase().chars().take(14).collect();
        Self { key_id: format!("OSPREY{id}"), secret: format!("{}{}", word(), word()) }
    }

    /// Writes the file to source: endpoint, region and key for the AWS CLI and the SDKs.
    ///
    /// # Errors
    /// A sentence when it can't be written.
    pub fn write_env(&self, dir: &Path, endpoint: &str) -> Result<PathBuf, CredentialsError> {
        let file = dir.join(ENV_FILE);
        let Self { key_id, secret } = self;
        let text = format!(
            "# Source this file, and the AWS CLI and the AWS SDKs speak to the local Batch and its queues.\n\
             unset AWS_SESSION_TOKEN AWS_SECURITY_TOKEN AWS_PROFILE AWS_DEFAULT_PROFILE\n\
             unset AWS_ENDPOINT_URL_BATCH AWS_ENDPOINT_URL_SQS AWS_IGNORE_CONFIGURED_ENDPOINT_URLS\n\
             export AWS_ENDPOINT_URL={endpoint}\n\
             export AWS_REGION={REGION}\n\
             export AWS_DEFAULT_REGION={REGION}\n\
             export AWS_ACCESS_KEY_ID={key_id}\n\
             export AWS_SECRET_ACCESS_KEY={secret}\n\
             export AWS_EC2_METADATA_DISABLED=true\n"
        );
        put_private(&file, &text).map_err(|error| failed("written", &file, &error))?;
        Ok(file)
    }
}

/// Checks that a path is this user's and none of `forbidden`'s permissions are set.
fn check(path: &Path, what: &str, forbidden: u32, remedy: &str) -> Result<(), CredentialsError> {
    let metadata = fs::metadata(path).map_err(|error| failed("read", path, &error))?;
    let shown = path.display();
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(CredentialsError(format!(
            "the {what} `{shown}` belongs to another user, who could submit as you: take one of your own"
        )));
    }
    if metadata.permissions().mode() & forbidden != 0 {
        return Err(CredentialsError(format!("the {what} `{shown}` is open to other users: `{remedy}` closes it")));
    }
    Ok(())
}

/// Writes a file that only this user can read; a reader sees the old or the new, never a part.
fn put_private(file: &Path, text: &str) -> io::Result<()> {
    let mut new = file.as_os_str().to_owned();
    new.push(".new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut draft: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    draft.write_all(text.as_bytes())?;
    fs::rename(&new, file)
}

fn failed(done: &str, path: &Path, error: &io::Error) -> CredentialsError {
    let cause = match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "its file system is read-only".to_owned(),
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_lowercase(),
    };
    CredentialsError(format!("`{}` can't be {done}: {cause}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("local-server-key-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        create_private(&dir).unwrap();
        dir
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_directory_keeps_its_key_in_files_for_one_user() {
        let dir = dir("kept");
        let key = Credentials::of(&dir).unwrap();
        assert_eq!(Credentials::of(&dir).unwrap(), key);
        assert_eq!((key.key_id.len(), key.secret.len()), (20, 64));
        let env = key.write_env(&dir, "http://127.0.0.1:1").unwrap();
        let text = fs::read_to_string(&env).unwrap();
        assert!(text.contains("export AWS_ENDPOINT_URL=http://127.0.0.1:1\n"), "{text}");
        assert!(text.contains(&format!("export AWS_SECRET_ACCESS_KEY={}\n", key.secret)));
        assert_eq!((mode(&dir), mode(&dir.join(SECRET_FILE)), mode(&env)), (0o700, 0o600, 0o600));
        assert!(!format!("{key:?}").contains(&key.secret));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_is_open_to_others_is_refused() {
        let dir = dir("open");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
        let sentence = Credentials::of(&dir).unwrap_err().to_string();
        let shown = dir.display();
        assert_eq!(sentence, format!("the directory `{shown}` is open to other users: `chmod o-w {shown}` closes it"));
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        Credentials::of(&dir).unwrap();
        let file = dir.join(SECRET_FILE);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let sentence = Credentials::of(&dir).unwrap_err().to_string();
        let shown = file.display();
        assert_eq!(sentence, format!("the file `{shown}` is open to other users: `chmod 600 {shown}` closes it"));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_file_without_a_key_is_told() {
        let dir = dir("broken");
        let file = dir.join(SECRET_FILE);
        put_private(&file, "{}").unwrap();
        let want = format!("`{}` holds no key: remove it, and a new one is made", file.display());
        assert_eq!(Credentials::of(&dir).unwrap_err().to_string(), want);
        fs::remove_dir_all(dir).unwrap();
    }
}
