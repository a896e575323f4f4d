//! Providers of language models that the client can set (unstable).

use crate::codec::{ids, record, string_enum};
use crate::model::Secret;

ids! {
    /// A provider of language models, named by the agent.
    pub struct ProviderId;
}

record! {
    /// Asks for the providers.
    pub struct ListProvidersRequest {}

    /// The providers.
    pub struct ListProvidersResponse {
        required {
            /// All of them.
            providers: Vec<ProviderInfo> = "providers",
        }
    }

    /// A provider.
    pub struct ProviderInfo {
        required {
            /// Its id.
            provider_id: ProviderId = "providerId",
            /// Whether the agent cannot do without it.
            required: bool = "required",
            /// The protocols that it may speak.
            supported: Vec<LlmProtocol> = "supported" list,
        }
        optional {
            /// How it is set now; absent means that it is disabled.
            current: Option<ProviderConfig> = "current" strict,
        }
    }

    /// How a provider is set.
    pub struct ProviderConfig {
        required {
            /// The protocol that it speaks.
            api_type: LlmProtocol = "apiType",
            /// Where it is.
            base_url: String = "baseUrl",
        }
    }

    /// Sets a provider.
    pub struct SetProviderRequest {
        required {
            /// The provider.
            provider_id: ProviderId = "providerId",
            /// The protocol that it speaks.
            api_type: LlmProtocol = "apiType",
            /// Where it is.
            base_url: String = "baseUrl",
        }
        optional {
            /// Headers of every request to it.
            headers: Vec<(String, Secret)> = "headers" strict,
        }
    }

    /// The provider is set.
    pub struct SetProviderResponse {}

    /// Disables a provider.
    pub struct DisableProviderRequest {
        required {
            /// The provider.
            provider_id: ProviderId = "providerId",
        }
    }

    /// The provider is disabled.
    pub struct DisableProviderResponse {}
}

string_enum! {
    /// A protocol of language models.
    pub enum LlmProtocol {
        /// That of Anthropic.
        Anthropic = "anthropic",
        /// That of OpenAI.
        Openai = "openai",
        /// That of Azure.
        Azure = "azure",
        /// That of Vertex.
        Vertex = "vertex",
        /// That of Bedrock.
        Bedrock = "bedrock",
    }
}
