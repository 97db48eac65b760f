/** Audit of the credit ledger: lots, wallets and wallet transactions equal the postings (docs/decisions/0014-credit-ledger.md). */
import {
  type CreditFault,
  type CreditSums,
  findCreditFaults,
  loadCreditSums,
  sampleWallets,
} from '../../../storage/audit/credits.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { OnFinding } from './findings.ts';

const FAULTS_MAX = 1_000;
const SAMPLE = 100;

export async function auditCredits({ postgres }: Pick<Stores, 'postgres'>, found: OnFinding): Promise<CreditSums> {
  for (const fault of await findCreditFaults(postgres, { wallets: null, limit: FAULTS_MAX }))
    found(toCreditFinding(fault));
  return loadCreditSums(postgres);
}

/** Continuous audit of some wallets. */
export async function sampleCredits({ postgres }: Pick<Stores, 'postgres'>, found: OnFinding): Promise<void> {
  const wallets = await sampleWallets(postgres, SAMPLE);
  for (const fault of await findCreditFaults(postgres, { wallets, limit: FAULTS_MAX })) found(toCreditFinding(fault));
}

function toCreditFinding({ kind, id, stored, found }: CreditFault) {
  return { kind, count: 1, what: `${id} says ${stored}, and ${found} was posted` };
}
