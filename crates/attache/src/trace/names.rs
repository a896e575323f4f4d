//! What a name says of its value: the key of a member, the name of a variable, an option or a header.

/// What a name says of its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Named {
    /// Nothing.
    Open,
    /// It is MCP servers.
    Servers,
    /// It is variables or headers.
    Pairs,
    /// It is an address.
    Address,
    /// It is about a login.
    Login,
    /// It is a secret, unless it is a number: so many tokens.
    SecretOrCount,
    /// It is a secret.
    Secret,
}

/// The longest word of a name that is looked at. Secrets have shorter names.
const LONGEST_WORD: usize = 24;

/// What a name says. Its words begin with capitals, or have something between them that is no letter.
pub(super) fn named(name: &str) -> Named {
    let mut found = Seen::default();
    words(name, |word| found.see(word));
    found.verdict(name)
}

/// Whether what is assigned to a name in a text is a secret. Text is code and prose: `key = 5` and `the token: …` are no secrets,
/// `api_key = …` is.
pub(super) fn is_secret_in_text(name: &str) -> bool {
    let mut found = Seen::default();
    words(name, |word| found.see(word));
    let is_long = found.words > 1 || name.len() > 6;
    match found.verdict(name) {
        Named::Secret | Named::SecretOrCount => is_long && !found.is_plural || found.is_password,
        _ => false,
    }
}

/// Whether what is assigned to a name in a text is a secret if it does not look like a word: `token: 5f3c09ab`.
pub(super) fn is_secret_if_random(name: &str) -> bool {
    ["token", "secret", "jwt", "pass", "pwd", "cookie", "signature"].iter().any(|word| word.eq_ignore_ascii_case(name))
}

/// Whether a header of this name is a secret to its end.
pub(super) fn is_secret_header(name: &str) -> bool {
    const HEADERS: [&str; 9] = [
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "x-api-key",
        "api-key",
        "x-auth-token",
        "x-goog-api-key",
        "private-token",
    ];
    HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name))
}

#[derive(Default)]
struct Seen {
    words: usize,
    is_secret: bool,
    is_password: bool,
    is_plural: bool,
    has_tokens: bool,
    has_token: bool,
    is_counted: bool,
    has_auth: bool,
    has_pairs: bool,
    has_address: bool,
    ends_as_method: bool,
}

impl Seen {
    fn see(&mut self, word: &[u8]) {
        self.words += 1;
        (self.ends_as_method, self.has_address) = (false, false);
        match word {
            b"token" => (self.is_secret, self.has_token) = (true, true),
            b"tokens" => (self.is_secret, self.has_tokens, self.is_plural) = (true, true, true),
            b"keys" => (self.is_secret, self.is_plural) = (true, true),
            b"password" | b"passwords" | b"passwd" | b"passphrase" => (self.is_secret, self.is_password) = (true, true),
            b"key" | b"pwd" | b"pass" | b"secret" | b"secrets" | b"jwt" | b"signature" | b"cookie" | b"cookies"
            | b"credential" | b"credentials" | b"authorization" | b"bearer" => self.is_secret = true,
            b"auth" | b"oauth" => self.has_auth = true,
            b"env" | b"envs" | b"environ" | b"environment" | b"header" | b"headers" => self.has_pairs = true,
            b"url" | b"uri" | b"urls" | b"uris" | b"endpoint" | b"endpoints" | b"href" => self.has_address = true,
            b"method" | b"methods" => self.ends_as_method = true,
            b"count" | b"limit" | b"max" | b"min" | b"used" | b"usage" | b"total" | b"size" | b"budget"
            | b"remaining" | b"input" | b"output" => self.is_counted = true,
            _ => self.see_end(word),
        }
    }

    /// Words that are written together: `apikey`, `baseurl`.
    fn see_end(&mut self, word: &[u8]) {
        const SECRETS: [&[u8]; 9] =
            [b"key", b"keys", b"token", b"secret", b"secrets", b"password", b"passwd", b"cookie", b"credentials"];
        if word.ends_with(b"tokens") {
            (self.is_secret, self.has_tokens) = (true, true);
        } else if SECRETS.iter().any(|secret| word.ends_with(secret)) {
            self.is_secret = true;
        } else if word.ends_with(b"url") || word.ends_with(b"uri") {
            self.has_address = true;
        }
    }

    fn verdict(&self, name: &str) -> Named {
        let is_count = self.has_tokens || (self.has_token && self.is_counted);
        match self {
            Seen { is_secret: true, .. } if is_count => Named::SecretOrCount,
            Seen { is_secret: true, .. } => Named::Secret,
            Seen { has_pairs: true, .. } => Named::Pairs,
            // `authMethods` is how one may log in.
            Seen { has_auth: true, ends_as_method: true, .. } => Named::Open,
            Seen { has_auth: true, .. } => Named::Login,
            Seen { has_address: true, .. } => Named::Address,
            _ if matches!(name, "mcpServers" | "mcp_servers" | "mcp-servers") => Named::Servers,
            _ => Named::Open,
        }
    }
}

/// Hands out the words of a name in lower case.
fn words(name: &str, mut see: impl FnMut(&[u8])) {
    let bytes = name.as_bytes();
    let mut word = [0; LONGEST_WORD];
    let mut length = 0;
    for (at, byte) in bytes.iter().enumerate() {
        // `apiKey`, and `APIKey`: a capital begins a word after a small letter, or before one.
        let is_start = byte.is_ascii_uppercase()
            && at > 0
            && (!bytes[at - 1].is_ascii_uppercase() || bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase));
        if length > 0 && (is_start || !byte.is_ascii_alphabetic()) {
            see(&word[..length]);
            length = 0;
        }
        if byte.is_ascii_alphabetic() {
            if length == LONGEST_WORD {
                // The end of a long word is what counts.
                word.rotate_left(1);
                length -= 1;
            }
            word[length] = byte.to_ascii_lowercase();
            length += 1;
        }
    }
    if length > 0 {
        see(&word[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_their_values_are() {
        let rows: [(Named, &[&str]); 7] = [
            (
                Named::Secret,
                &[
                    "token",
                    "apiKey",
                    "apiKeyValue",
                    "API_KEY",
                    "APIKEY",
                    "APIKeyID",
                    "pwd",
                    "jwt",
                    "signature",
                    "pass",
                    "client-secret",
                    "set_cookie",
                    "credentials",
                    "Authorization",
                    "refreshToken",
                    "mypassword",
                    "auth_token",
                    "keys",
                    "private.key",
                    "a_very_long_name_without_a_break_andalotofwordsbeforethekey",
                ],
            ),
            (
                Named::SecretOrCount,
                &[
                    "tokens",
                    "inputTokens",
                    "totalTokens",
                    "max_tokens",
                    "maxTokens",
                    "tokenCount",
                    "cachedReadTokens",
                    "token_limit",
                ],
            ),
            (
                Named::Pairs,
                &["env", "Env", "environment", "envVars", "headers", "httpHeaders", "HTTP_HEADERS", "extra-headers"],
            ),
            (Named::Login, &["auth", "oauth", "authStatus"]),
            (Named::Address, &["url", "uri", "URL", "serverUrl", "baseurl", "endpoint", "href", "base_url"]),
            (Named::Servers, &["mcpServers", "mcp_servers"]),
            (
                Named::Open,
                &[
                    "sessionId",
                    "toolCallId",
                    "messageId",
                    "cursor",
                    "nextCursor",
                    "authMethods",
                    "methodId",
                    "environmental",
                    "passed",
                    "keyboard",
                    "compass",
                    "author",
                    "authored",
                    "title",
                    "content",
                    "text",
                    "",
                    "é",
                    "urlEncoded",
                ],
            ),
        ];
        for (expected, names) in rows {
            for name in names {
                assert_eq!(named(name), expected, "{name}");
            }
        }
    }
}
