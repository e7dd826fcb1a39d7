//! The files of the scope: the operator's rules.
//!
//! Decides: a file that cannot be read, or has a mistake, is refused with all its mistakes.
//! Leaves to others: what is in them (`scope`).

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use crate::config::Config;
use crate::scope::{RULES_BYTES_MAX, Rules, Scope};

/// What the files hold.
#[derive(Clone, Debug, Default)]
pub struct ScopeFiles {
    /// `scope.rules`
    pub rules: Arc<Rules>,
}

impl ScopeFiles {
    /// `scope` with what the files hold.
    pub fn of(&self, scope: &Scope) -> Scope {
        scope.with_rules(Arc::clone(&self.rules))
    }

    /// Reads the files that `config` names; every mistake, a line each.
    ///
    /// # Errors
    /// What an operator can mend; never empty.
    pub fn read(config: &Config) -> Result<ScopeFiles, Vec<String>> {
        let rules = match &*config.scope.rules {
            "" => Rules::default(),
            path => {
                let text = read(Path::new(path), RULES_BYTES_MAX)
                    .map_err(|error| vec![format!("{path}: {error}; expected the file of scope.rules")])?;
                Rules::parse(path, &text)
                    .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?
            }
        };
        Ok(ScopeFiles { rules: Arc::new(rules) })
    }
}

/// A file's bytes; one more than `bytes_max` where it is longer.
fn read(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::TempFolder;

    #[test]
    fn mistakes_are_told_with_file_and_line() {
        let folder = TempFolder::new("scope-files");
        let file = folder.file("scope.rules", "allow host=a.test\nallow hots=b.test\ndeny depth=x\n");
        let mut config = Config::default();
        assert!(ScopeFiles::read(&config).expect("no files").rules.is_empty());
        config.scope.rules.clone_from(&file);
        let errors = ScopeFiles::read(&config).expect_err("two mistakes");
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors[0].starts_with(&format!("{file}:2: there is no condition \"hots\"")), "{errors:?}");
        config.scope.rules = folder.at("none");
        assert!(ScopeFiles::read(&config).expect_err("no file")[0].contains("expected the file of scope.rules"));
    }
}
