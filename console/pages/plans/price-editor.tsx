/**
 * The editor of a price: model, tiers and terms at the left; at the right the cost of a quantity under the draft, priced by the service as
 * an invoice prices it. Nothing is written until it is published.
 */
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useRef, useState } from 'react';
import { Button } from '../../components/button.tsx';
import { Choice } from '../../components/choice.tsx';
import { findExactError } from '../../components/field-errors.ts';
import { Columns, Section } from '../../components/page.tsx';
import { useTexts } from '../../texts/texts.ts';
import { CostPanel } from './cost-panel.tsx';
import { addScaleQuantities, buildCostQuery } from './cost-query.ts';
import { MeterSelect } from './meter-select.tsx';
import {
  chooseModel,
  chooseType,
  hasCharge,
  isTiered,
  MODELS,
  type PriceDraft,
  type PriceModelChoice,
} from './price-draft.ts';
import styles from './price-editor.module.css';
import { chooseScale, indexCosts, listTierTotals, type PriceScale, suggestQuantity } from './price-figures.ts';
import { PriceTerms } from './price-terms.tsx';
import { PRICE_TEXTS } from './price-texts.ts';
import { ScaleChoice } from './scale-choice.tsx';
import { isScaled, SinglePrice } from './single-price.tsx';
import { TierTable } from './tier-table.tsx';

const TYPING_MS = 250;

type PriceEditorProps = {
  /** The head of the page, so that the cost stands beside it, too. */
  head: ReactNode;
  draft: PriceDraft;
  onDraft: (draft: PriceDraft) => void;
  /** A stored price: its type and its terms stay. */
  isStored: boolean;
  /** The error of the last attempt to publish. */
  error: Error | null;
  /** Why the price cannot be published now. */
  blocked: string | null;
  /** Why there is nothing to publish. */
  idle?: string | null;
  note: string;
  runningCount: number;
  onPublish: () => void;
  discard: ReactNode;
};

export function PriceEditor(props: PriceEditorProps): ReactNode {
  const { draft, onDraft, isStored, blocked } = props;
  const texts = useTexts(PRICE_TEXTS);
  const form = useRef<HTMLDivElement>(null);
  const [scale, setScale] = useState<PriceScale>(() => chooseScale(draft));
  const [typed, setTyped] = useState<string | null>(null);
  const quantity = typed ?? suggestQuantity(draft);
  const [priced] = useDebouncedValue(draft, TYPING_MS);
  const isComplete = hasCharge(priced);
  const quantities = addScaleQuantities(priced, quantity, scale);
  const cost = useQuery({ ...buildCostQuery(priced, quantities), enabled: isComplete });
  const costs = indexCosts(cost.data?.quantities ?? [], cost.data?.items ?? []);
  const errorAt = (field: string) =>
    findFieldError(props.error, field) ?? (isComplete ? findFieldError(cost.error, field) : undefined);
  const isReadOnly = blocked !== null;
  const publish = () => {
    // An input whose text is no number has no value; the reader mends it first.
    const wrong = form.current?.querySelector<HTMLInputElement>('input[aria-invalid="true"]');
    if (wrong) wrong.focus();
    else props.onPublish();
  };
  const panel = (
    <>
      <CostPanel
        draft={priced}
        quantity={quantity}
        onQuantity={setTyped}
        scale={isScaled(draft.model) ? scale : 0}
        costs={isComplete ? costs : new Map()}
        quantities={cost.data?.quantities ?? []}
        error={isComplete ? cost.error : null}
        isLoading={isComplete && cost.isPending}
      />
      <div className={styles.publish}>
        <span className="label">{props.note}</span>
        {props.discard}
        <Button isPrimary blocked={blocked ?? props.idle} onClick={publish}>
          {texts.publish}
        </Button>
      </div>
    </>
  );
  return (
    <Columns side={<div className={styles.side}>{panel}</div>}>
      <div ref={form}>
        {props.head}
        {!isStored && (
          <Section title={texts.charge} hint={draft.type === 'USAGE' ? texts.usageHint : texts.fixedHint}>
            <div className={styles.charge}>
              <Choice
                label={texts.charge}
                value={draft.type}
                options={[
                  { value: 'USAGE', label: texts.usage },
                  { value: 'FIXED', label: texts.fixed },
                ]}
                onValue={(type) => onDraft(chooseType(draft, type))}
              />
              {draft.type === 'USAGE' && (
                <MeterSelect
                  draft={draft}
                  onMeter={(changes) => onDraft({ ...draft, ...changes })}
                  error={errorAt('meter_id')}
                />
              )}
            </div>
          </Section>
        )}
        <Section title={texts.model} hint={texts.modelHint(draft.model)}>
          <Choice<PriceModelChoice>
            label={texts.model}
            value={draft.model}
            options={MODELS.map((value) => ({
              value,
              label: texts.modelName(value),
              blocked:
                isReadOnly && value !== draft.model
                  ? blocked
                  : isStored && value === 'flat' && draft.type === 'USAGE'
                    ? texts.flatNeedsFixed
                    : null,
            }))}
            onValue={(model) => onDraft(isStored ? { ...draft, model } : chooseModel(draft, model))}
          />
        </Section>
        <Section
          title={isTiered(draft.model) ? texts.tiers : texts.price}
          end={isScaled(draft.model) && <ScaleChoice scale={scale} onScale={setScale} />}
        >
          {isTiered(draft.model) ? (
            <TierTable
              tiers={draft.tiers}
              onTiers={(tiers) => onDraft({ ...draft, tiers })}
              scale={scale}
              currency={draft.currency}
              totals={listTierTotals(draft, costs)}
              totalLabel={draft.model === 'volume' ? texts.costAtEnd : texts.tierTotal}
              errorAt={errorAt}
              isReadOnly={isReadOnly}
            />
          ) : (
            <SinglePrice {...{ draft, onDraft, scale, errorAt, isReadOnly }} />
          )}
        </Section>
        <PriceTerms {...{ draft, onDraft, isStored, errorAt, isReadOnly }} runningCount={props.runningCount} />
      </div>
    </Columns>
  );
}

/** The message for a field of the draft. A cost names it as a part of its `price`. */
function findFieldError(error: Error | null, field: string): ReactNode {
  return findExactError(error, field) ?? findExactError(error, `price.${field}`);
}
