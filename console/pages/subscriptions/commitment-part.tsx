/** Commitments of a new subscription: for all of its usage, or for single prices. */
import { Checkbox, Select } from '@mantine/core';
import type { ReactNode } from 'react';
import { Choice } from '../../components/choice.tsx';
import { NumberInput } from '../../components/number-input.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { PlanPrice } from '../plans/plan-queries.ts';
import { NEW_TEXTS } from './new-texts.ts';
import { BILLING_PERIODS, type CommitmentDraft, type DraftPeriod, NO_COMMITMENT } from './subscription-draft.ts';
import type { DraftPartProps } from './subscription-form.tsx';
import styles from './subscriptions.module.css';

export function CommitmentPart({ draft, prices, findError, set }: DraftPartProps): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const hasCommitment = draft.commitment_amount !== '';
  const measured = prices.filter(({ type, currency }) => type === 'USAGE' && currency === draft.currency);
  const setLine = (price_id: string, line: CommitmentDraft) =>
    set({ line_commitments: { ...draft.line_commitments, [price_id]: line } });
  return (
    <div className={styles.form}>
      <div className={styles.pair}>
        <NumberInput
          label={texts.commitment}
          description={texts.commitmentHint}
          unit={draft.currency.toUpperCase()}
          value={draft.commitment_amount}
          error={findError('commitment_amount')}
          onValue={(commitment_amount) => set({ commitment_amount })}
        />
        {hasCommitment && (
          <NumberInput
            label={texts.overage}
            description={texts.overageHint}
            value={draft.overage_factor}
            error={findError('overage_factor')}
            onValue={(overage_factor) => set({ overage_factor })}
          />
        )}
        {hasCommitment && (
          <Select
            label={texts.commitmentTerm}
            description={texts.commitmentTermHint}
            clearable
            clearButtonProps={{ 'aria-label': texts.asBilled }}
            placeholder={texts.asBilled}
            value={draft.commitment_duration === '' ? null : draft.commitment_duration}
            data={BILLING_PERIODS.map((value) => ({ value, label: texts.periodName(value) }))}
            error={findError('commitment_duration')}
            onChange={(value) => set({ commitment_duration: (value as DraftPeriod | null) ?? '' })}
          />
        )}
      </div>
      {hasCommitment && (
        <Checkbox
          label={texts.trueUp}
          checked={draft.enable_true_up}
          onChange={({ currentTarget }) => set({ enable_true_up: currentTarget.checked })}
        />
      )}
      {measured.map((price) => (
        <LineCommitment
          key={price.id}
          price={price}
          line={draft.line_commitments[price.id] ?? NO_COMMITMENT}
          error={findError(`line_item_commitments.${price.id}`)}
          onLine={(line) => setLine(price.id, line)}
        />
      ))}
    </div>
  );
}

type LineCommitmentProps = {
  price: PlanPrice;
  line: CommitmentDraft;
  error: ReactNode;
  onLine: (line: CommitmentDraft) => void;
};

function LineCommitment({ price, line, error, onLine }: LineCommitmentProps): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const { id, display_name, currency } = price;
  const name = display_name ?? id;
  const change = (changes: Partial<CommitmentDraft>) => onLine({ ...line, ...changes });
  return (
    <fieldset className={styles.part}>
      <legend>
        {texts.commitmentOf} <bdi>{name}</bdi>
      </legend>
      <Choice
        label={texts.commitmentUnit}
        value={line.unit}
        options={[
          { value: 'amount', label: texts.inMoney },
          { value: 'quantity', label: texts.inUnits },
        ]}
        onValue={(unit) => change({ unit })}
      />
      <div className={styles.pair}>
        <NumberInput
          label={line.unit === 'amount' ? texts.committedAmount : texts.committedUnits}
          description={texts.commitmentHint}
          unit={line.unit === 'amount' ? currency.toUpperCase() : ''}
          value={line.value}
          error={error}
          onValue={(value) => change({ value })}
        />
        {line.value !== '' && (
          <NumberInput
            label={texts.overage}
            description={texts.overageHint}
            value={line.overage_factor}
            onValue={(overage_factor) => change({ overage_factor })}
          />
        )}
      </div>
      {line.value !== '' && (
        <Checkbox
          label={texts.trueUp}
          checked={line.enable_true_up}
          onChange={({ currentTarget }) => change({ enable_true_up: currentTarget.checked })}
        />
      )}
    </fieldset>
  );
}
