/** Errors of providers without the credentials that they quote. */
import { expect } from 'chai';
import { redactError } from '../../../actions/foundation/connections/redact-error.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';

describe('actions/redact-error', () => {
  it('removes a secret that begins with another one as a whole', () => {
    const secrets = { webhook_username: 'acme-user', api_key: 'acme-user-live-1234567890' };
    const error = new ProviderError('person', 'no key acme-user-live-1234567890 of acme-user');
    expect(redactError(error, secrets)).to.have.property('message', 'no key [redacted] of [redacted]');
  });
});
