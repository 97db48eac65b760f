/** The trial balance names what was changed behind the back of the ledger, and nothing else. */
import { expect } from 'chai';
import { auditCredits, sampleCredits } from '../../../../actions/operations/audit/credits.ts';
import type { Finding } from '../../../../actions/operations/audit/findings.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';

describe('audit of the credits', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z' });
  });
  after(() => api.stop());

  const ok = async <Path extends string>(path: Path, body: object) => {
    const answer = await api.request('POST', path, { body });
    expect(answer.status, answer.text).to.be.within(200, 299);
    return answer.body;
  };
  async function kinds(look: typeof auditCredits | typeof sampleCredits): Promise<string[]> {
    const findings: Finding[] = [];
    await look(api.services, (finding) => findings.push(finding));
    return [...new Set(findings.map(({ kind }) => kind))].sort();
  }
  /** As nothing of ours can do it. */
  const behindItsBack = (statement: string) =>
    api.services.postgres.transaction(async (transaction) => {
      await transaction.raw('set local session_replication_role = replica');
      await transaction.raw(statement);
    });

  it('finds nothing where nothing is wrong, and each thing that is', async () => {
    await ok('/customers', { external_id: 'acme' });
    const wallet = {
      external_customer_id: 'acme',
      currency: 'usd',
      conversion_rate: '0.3',
      initial_credits_to_load: '10',
    };
    const { id } = await ok('/wallets', wallet);
    const debit = {
      credits: '12',
      transaction_reason: 'MANUAL_BALANCE_DEBIT',
      idempotency_key: 'd',
      allow_negative: true,
    };
    await ok(`/wallets/${id}/debit`, debit);
    await ok(`/wallets/${id}/top-up`, { credits_to_add: '7', transaction_reason: 'FREE_CREDIT_GRANT' });
    await ok(`/wallets/${id}/top-up`, { credits_to_add: '5', transaction_reason: 'PURCHASED_CREDIT_INVOICED' });
    const { postgres } = api.services;
    const sums = await auditCredits(api.services, () => undefined);
    expect(sums).to.deep.equal({ wallets: 1, lots: 3, postings: 9 });
    expect([await kinds(auditCredits), await kinds(sampleCredits)]).to.deep.equal([[], []]);
    const faults: [string, string, string][] = [
      [
        'update wallets set credit_balance = credit_balance + 1',
        'update wallets set credit_balance = credit_balance - 1',
        'wallet_differs',
      ],
      ['update wallets set balance = balance + 0.01', 'update wallets set balance = balance - 0.01', 'wallet_differs'],
      [
        'update wallet_transactions set credits_available = credits_available - 1 where credits_available > 0',
        'update wallet_transactions set credits_available = credits_available + 1 where credits_available > 0',
        'lot_differs',
      ],
      [
        `update wallet_transactions set credit_amount = 13 where type = 'debit'`,
        `update wallet_transactions set credit_amount = 12 where type = 'debit'`,
        'movement_differs',
      ],
      [
        `update ledger_postings set credits = credits + 1 where account = 'debited'`,
        `update ledger_postings set credits = credits - 1 where account = 'debited'`,
        'credits_unbalanced',
      ],
    ];
    for (const [fault, mended, kind] of faults) {
      await behindItsBack(fault);
      expect([await kinds(auditCredits), await kinds(sampleCredits)], fault).to.deep.equal([[kind], [kind]]);
      await behindItsBack(mended);
    }
    expect(await kinds(auditCredits)).to.deep.equal([]);
    expect((await postgres('wallets').first()).credits_owed).to.equal('0');
  });
});
