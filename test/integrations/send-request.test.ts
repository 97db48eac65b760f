/** Requests to providers: credentials that no header can contain. */
import { expect } from 'chai';
import { sendRequest } from '../../integrations/send-request.ts';
import { catchFailure } from '../support/providers/failure.ts';

describe('integrations/send-request', () => {
  for (const character of ['\n', '\u2026', '\0'])
    it(`refuses credentials with ${JSON.stringify(character)}, and does not quote them`, async () => {
      const headers = { authorization: `Bearer key${character}end` };
      const failure = await catchFailure(() =>
        sendRequest('Acme', new URL('http://127.0.0.1:9'), { method: 'GET', headers }),
      );
      expect(failure).to.include({ error_class: 'person', is_unauthorized: true });
      expect(failure.message).to.equal('Acme: the credentials have a character that no header may have');
    });
});
