/** Terms that most subscriptions do not have. Each part is closed until the user opens it, or the service refuses one of its fields. */
import { Checkbox } from '@mantine/core';
import type { ReactNode } from 'react';
import { Disclosure } from '../../components/disclosure.tsx';
import { Section, Sheet } from '../../components/page.tsx';
import { useTexts } from '../../texts/texts.ts';
import { AddonsPart } from './addons-part.tsx';
import { CommitmentPart } from './commitment-part.tsx';
import { CouponsInput } from './coupons-input.tsx';
import { EntitlementsPart } from './entitlements-part.tsx';
import { NEW_TEXTS } from './new-texts.ts';
import { BillingPart, PayerPart } from './payment-part.tsx';
import { PhasesPart } from './phases-part.tsx';
import type { TermGroup } from './routes.ts';
import type { SubscriptionDraft } from './subscription-draft.ts';
import type { DraftPartProps } from './subscription-form.tsx';
import { listOverriddenEntitlements } from './subscription-request.ts';
import styles from './subscriptions.module.css';
import { TaxRatesInput } from './tax-rates-input.tsx';

/** Fields of each part. A refused field opens its part. */
export const TERM_FIELDS: Readonly<Record<TermGroup, readonly string[]>> = {
  discount: ['coupons'],
  commitment: ['commitment_amount', 'commitment_duration', 'overage_factor', 'enable_true_up', 'line_item_commitments'],
  addons: ['addons'],
  entitlements: ['override_entitlements'],
  phases: ['phases'],
  billing: [
    ...['billing_period_count', 'billing_anchor', 'end_date', 'auto_invoice_threshold', 'payment_terms'],
    'collection_method',
  ],
  taxes: ['tax_rate_overrides'],
  payer: ['inheritance'],
};

type MoreTermsProps = DraftPartProps & {
  opened: readonly TermGroup[];
  onOpened: (opened: readonly TermGroup[]) => void;
};

export function MoreTerms({ opened, onOpened, ...props }: MoreTermsProps): ReactNode {
  const { draft, findError, set } = props;
  const texts = useTexts(NEW_TEXTS);
  const parts: Record<TermGroup, ReactNode> = {
    discount: (
      <CouponsInput
        label={texts.coupons}
        value={draft.coupons}
        error={findError('coupons')}
        onValue={(coupons) => set({ coupons })}
      />
    ),
    commitment: <CommitmentPart {...props} />,
    addons: <AddonsPart {...props} />,
    entitlements: <EntitlementsPart {...props} />,
    phases: <PhasesPart {...props} />,
    billing: <BillingPart {...props} />,
    taxes: <TaxRatesInput {...props} />,
    payer: <PayerPart {...props} />,
  };
  const counts = countTerms(draft);
  return (
    <Section title={texts.more} hint={texts.moreHint}>
      <Sheet>
        {(Object.keys(TERM_FIELDS) as TermGroup[]).map((group) => (
          <Disclosure
            key={group}
            title={texts.groupName(group)}
            value={counts[group] === 0 ? texts.noTerms : texts.termCount(String(counts[group]))}
            isOpen={opened.includes(group) || TERM_FIELDS[group].some((field) => findError(field) !== undefined)}
            onToggle={(isOpen) => onOpened(isOpen ? [...opened, group] : opened.filter((each) => each !== group))}
          >
            {parts[group]}
          </Disclosure>
        ))}
      </Sheet>
      <div className={styles.foot}>
        <Checkbox
          label={texts.draft}
          checked={draft.is_draft}
          onChange={({ currentTarget }) => set({ is_draft: currentTarget.checked })}
        />
      </div>
    </Section>
  );
}

/** Counts the terms that are set in each part. */
function countTerms(draft: SubscriptionDraft): Record<TermGroup, number> {
  const committed = Object.values(draft.line_commitments).filter(({ value }) => value !== '');
  const billed = [
    draft.billing_period_count,
    draft.billing_cycle === 'anniversary' ? draft.anchor_day : '',
    draft.end_day,
    draft.auto_invoice_threshold,
    draft.payment_terms,
    draft.collection_method === 'send_invoice' ? draft.collection_method : '',
  ];
  return {
    discount: draft.coupons.length,
    commitment: committed.length + (draft.commitment_amount === '' ? 0 : 1),
    addons: draft.addons.length,
    entitlements: listOverriddenEntitlements(draft).length,
    phases: draft.phases.length,
    billing: billed.filter((value) => value !== '').length,
    taxes: draft.tax_rate_codes.length,
    payer: draft.payer === 'self' ? 0 : 1,
  };
}
