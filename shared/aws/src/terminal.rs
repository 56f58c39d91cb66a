//! For a person at a terminal: whose account, which stack, and clear words when there is none.

use std::collections::BTreeMap;
use std::error::Error;

use aws_config::SdkConfig;
use aws_sdk_batch::config::http::HttpResponse;
use aws_sdk_batch::config::{ProvideCredentials as _, Region};
use aws_sdk_batch::error::{ProvideErrorMetadata, SdkError};

use crate::clients::{Clients, loader};
use crate::fault::{Fault, story};
use crate::world::{Wiring, World};

/// What a person said of the account; what they left out is looked for where every AWS tool looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Profile of the AWS configuration.
    pub profile: Option<String>,
    /// Region.
    pub region: Option<String>,
    /// Address of every service, for emulators.
    pub endpoint_url: Option<String>,
}

/// Why AWS can't be reached, or not what was asked for. One sentence, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// No region.
    #[error("no AWS region is set")]
    NoRegion,
    /// No credentials.
    #[error("no AWS credentials were found: {0}")]
    NoCredentials(String),
    /// Credentials that were good once.
    #[error("the AWS credentials have expired: {0}")]
    Expired(String),
    /// Credentials that AWS doesn't take.
    #[error("AWS doesn't take the credentials: {0}")]
    NotTaken(String),
    /// A stack that isn't there.
    #[error("there is no stack `{name}` in {region}")]
    NoStack {
        /// Its name.
        name: String,
        /// Where it was looked for.
        region: String,
    },
    /// A table that isn't there.
    #[error("there is no table `{name}` in {region}")]
    NoTable {
        /// Its name.
        name: String,
        /// Where it was looked for.
        region: String,
    },
    /// Not allowed.
    #[error("{0}")]
    Denied(String),
    /// Nobody answers, or not as expected.
    #[error("AWS can't be asked: {0}")]
    Unreachable(String),
}

impl Obstacle {
    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::NoRegion => "add `--region eu-west-1`, set AWS_REGION, or give the profile a region",
            Self::NoCredentials(_) => {
                "name a profile that has keys or a role with `--profile`; after `aws sso login`, or with a `credential_process`, first `eval \"$(aws configure export-credentials --format env)\"`"
            }
            Self::Expired(_) => {
                "get new ones, such as with `aws sso login` and `eval \"$(aws configure export-credentials --format env)\"`"
            }
            Self::NotTaken(_) => "look at the profile, and whether this machine's clock is right",
            Self::NoStack { .. } => {
                "`aws cloudformation list-stacks` shows those that there are; look at `--region` and `--profile` too"
            }
            Self::NoTable { .. } => "`--stack` finds the table of a stack; look at `--region` and `--profile` too",
            Self::Denied(_) => "docs/operating.md lists what the command line needs",
            Self::Unreachable(_) => "look at the network, the region and `--endpoint-url`",
        }
    }

    /// Reads a failed call of `action`.
    fn of<E>(action: &str, error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let code = error.code().unwrap_or_default();
        let said = || error.message().map_or_else(|| code.to_owned(), |message| format!("{message} ({code})"));
        if code.starts_with("ExpiredToken") || code == "RequestExpired" {
            return Self::Expired(said());
        }
        match Fault::of(action, error) {
            Fault::Denied(why) => Self::Denied(why),
            Fault::NotSent(_) if error.as_service_error().is_some() => Self::NotTaken(said()),
            Fault::Throttled => Self::Unreachable("it was asked too often; try again in a moment".to_owned()),
            Fault::Refused(why) | Fault::NotSent(why) | Fault::Unknown(why) => Self::Unreachable(why),
        }
    }
}

/// An account that can be asked.
#[derive(Debug)]
pub struct Session {
    config: SdkConfig,
    clients: Clients,
    region: String,
}

impl Session {
    /// Finds region and credentials. No service of AWS is asked, but for those that give credentials.
    ///
    /// # Errors
    /// When there is neither.
    pub async fn open(access: &Access) -> Result<Self, Obstacle> {
        let mut loader = loader();
        if let Some(profile) = &access.profile {
            loader = loader.profile_name(profile);
        }
        if let Some(region) = &access.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(url) = &access.endpoint_url {
            loader = loader.endpoint_url(url);
        }
        let config = loader.load().await;
        check_credentials(&config).await?;
        let region = config.region().ok_or(Obstacle::NoRegion)?.to_string();
        Ok(Self { clients: Clients::new(&config), region, config })
    }

    /// The region.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Whose credentials these are, as SQS says it of a message that is sent with them: the id of a user, or that of a
    /// role and the name of its session.
    ///
    /// # Errors
    /// When STS can't be asked.
    pub async fn caller(&self) -> Result<String, Obstacle> {
        let answer = aws_sdk_sts::Client::new(&self.config).get_caller_identity().send().await;
        let answer = answer.map_err(|error| Obstacle::of("sts:GetCallerIdentity", &error))?;
        answer.user_id.ok_or_else(|| Obstacle::Unreachable("STS doesn't say who asks".to_owned()))
    }

    /// The outputs of a stack.
    ///
    /// # Errors
    /// When there is no such stack, or it can't be asked for.
    pub async fn outputs(&self, stack: &str) -> Result<BTreeMap<String, String>, Obstacle> {
        let client = aws_sdk_cloudformation::Client::new(&self.config);
        let answer = client.describe_stacks().stack_name(stack).send().await.map_err(|error| {
            let is_missing = error.code() == Some("ValidationError")
                && error.message().is_some_and(|message| message.contains("does not exist"));
            if is_missing { self.no_stack(stack) } else { Obstacle::of("cloudformation:DescribeStacks", &error) }
        })?;
        let found = answer.stacks().first().ok_or_else(|| self.no_stack(stack))?;
        let output = |output: &aws_sdk_cloudformation::types::Output| {
            Some((output.output_key()?.to_owned(), output.output_value()?.to_owned()))
        };
        Ok(found.outputs().iter().filter_map(output).collect())
    }

    fn no_stack(&self, name: &str) -> Obstacle {
        Obstacle::NoStack { name: name.to_owned(), region: self.region.clone() }
    }

    /// That a table is there and may be read.
    ///
    /// # Errors
    /// When it isn't.
    pub async fn check_table(&self, name: &str) -> Result<(), Obstacle> {
        let key = crate::store::item_key(&osprey_ports::Key::new("CONFIG", "LAYOUT"));
        let asked = self.clients.dynamodb.get_item().table_name(name).set_key(Some(key)).send().await;
        asked.map(drop).map_err(|error| {
            if error.code() == Some("ResourceNotFoundException") {
                return Obstacle::NoTable { name: name.to_owned(), region: self.region.clone() };
            }
            Obstacle::of("dynamodb:GetItem", &error)
        })
    }

    /// The world of these names.
    #[must_use]
    pub fn world(&self, wiring: &Wiring) -> World {
        World::new(&self.clients, wiring)
    }
}

async fn check_credentials(config: &SdkConfig) -> Result<(), Obstacle> {
    let Some(provider) = config.credentials_provider() else {
        return Err(Obstacle::NoCredentials("no provider is configured".to_owned()));
    };
    match provider.provide_credentials().await {
        Ok(_) => Ok(()),
        Err(error) => {
            let story = story(&error);
            let is_expired = story.to_lowercase().contains("expired");
            Err(if is_expired { Obstacle::Expired(story) } else { Obstacle::NoCredentials(story) })
        }
    }
}
