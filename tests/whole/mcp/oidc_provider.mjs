// The npm package oidc-provider as an identity provider on loopback: node oidc_provider.mjs PORT RESOURCE
import Provider from "oidc-provider";

const [port, resource] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const scopes = "memory:read memory:write memory:delete admin";

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "nightly",
      client_secret: "only-for-this-test-0123456789",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
      scope: scopes,
    },
  ],
  clientAuthMethods: ["client_secret_basic", "none"],
  scopes: ["openid", ...scopes.split(" ")],
  features: {
    clientCredentials: { enabled: true },
    registration: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => "https://other.example.org/api",
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, wanted) => ({
        scope: scopes,
        audience: wanted,
        accessTokenTTL: 300,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("listening", resource));
