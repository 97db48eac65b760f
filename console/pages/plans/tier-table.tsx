/** The tiers of a price as a table that is filled like a spreadsheet: Enter and the arrow keys change the row, a pasted table replaces all. */
import { type ClipboardEvent, type KeyboardEvent, type ReactNode, useRef, useState } from 'react';
import { NumberInput } from '../../components/number-input.tsx';
import { RemoveButton } from '../../components/remove-button.tsx';
import { Money, Quantity, Unknown } from '../../figures/money.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { isTable, parseTiers } from './parse-tiers.ts';
import { OPEN_TIER, type TierDraft } from './price-draft.ts';
import styles from './price-editor.module.css';
import { type PriceScale, scalePrice } from './price-figures.ts';
import { PRICE_TEXTS } from './price-texts.ts';
import { TierPaste } from './tier-paste.tsx';

export type TierTableProps = {
  tiers: readonly TierDraft[];
  onTiers: (tiers: readonly TierDraft[]) => void;
  scale: PriceScale;
  currency: string;
  /** Cost of each tier at its end. */
  totals: readonly (string | null)[];
  totalLabel: string;
  errorAt: (field: string) => ReactNode;
  isReadOnly: boolean;
};

type TierField = keyof TierDraft;

export function TierTable(props: TierTableProps): ReactNode {
  const { tiers, onTiers, scale, totals, totalLabel, currency, errorAt, isReadOnly } = props;
  const texts = useTexts(PRICE_TEXTS);
  const language = useLanguage();
  const table = useRef<HTMLTableElement>(null);
  const [pasted, setPasted] = useState<string | null>(null);
  const change = (at: number, changes: Partial<TierDraft>) =>
    onTiers(tiers.map((tier, index) => (index === at ? { ...tier, ...changes } : tier)));
  const addTier = () => onTiers([...tiers.slice(0, -1), OPEN_TIER, ...tiers.slice(-1)]);
  const removeTier = (at: number) =>
    onTiers(
      tiers
        .filter((_, index) => index !== at)
        .map((tier, index, all) => (index === all.length - 1 ? { ...tier, up_to: '' } : tier)),
    );
  const move = (event: KeyboardEvent<HTMLTableElement>) => moveInTable(event, table.current, addTier, isReadOnly);
  const paste = (event: ClipboardEvent) => {
    const text = event.clipboardData.getData('text/plain');
    if (isReadOnly || !isTable(text)) return;
    event.preventDefault();
    const { tiers: read, faults, isAmbiguous } = parseTiers(text, language);
    if (faults.length > 0 || isAmbiguous || read.length === 0) setPasted(text);
    else onTiers(toUnits(read, scale));
  };
  const priceInput = (field: 'unit_amount' | 'flat_amount', label: string, tier: TierDraft, at: number) => {
    const power = field === 'unit_amount' ? scale : 0;
    return (
      <NumberInput
        key={`${field}${power}`}
        aria-label={texts.inTier(label, at + 1)}
        data-column={field}
        readOnly={isReadOnly}
        placeholder={field === 'flat_amount' ? '–' : ''}
        value={scalePrice(tier[field], power)}
        onValue={(value) => change(at, { [field]: scalePrice(value, -power) })}
        error={errorAt(`tiers[${at}].${field}`)}
      />
    );
  };
  return (
    <>
      <div className={styles.tierSheet}>
        <table ref={table} className={styles.tiers} onKeyDown={move} onPaste={paste}>
          <thead>
            <tr>
              <th scope="col">{texts.from}</th>
              <th scope="col">{texts.upTo}</th>
              <th scope="col">{texts.unitAmount}</th>
              <th scope="col">{texts.flatFee}</th>
              <th scope="col">{totalLabel}</th>
              <td aria-hidden="true" />
            </tr>
          </thead>
          <tbody>
            {tiers.map((tier, at) => (
              <tr key={at}>
                <td data-label={texts.from} className={styles.from}>
                  {at === 0 ? <Quantity value="0" /> : <Quantity value={tiers[at - 1]!.up_to || null} />}
                </td>
                <td data-label={texts.upTo}>
                  {at === tiers.length - 1 ? (
                    <span className="muted">{texts.noLimit}</span>
                  ) : (
                    <NumberInput
                      aria-label={texts.inTier(texts.upTo, at + 1)}
                      data-column="up_to"
                      readOnly={isReadOnly}
                      value={tier.up_to}
                      onValue={(up_to) => change(at, { up_to })}
                      error={errorAt(`tiers[${at}].up_to`)}
                    />
                  )}
                </td>
                <td data-label={texts.unitAmount}>{priceInput('unit_amount', texts.unitAmount, tier, at)}</td>
                <td data-label={texts.flatFee}>{priceInput('flat_amount', texts.flatFee, tier, at)}</td>
                <td data-label={totalLabel} className={styles.total}>
                  {totals[at] ? <Money amount={totals[at]} currency={currency} /> : <Unknown />}
                </td>
                <td className={styles.remove}>
                  {tiers.length > 1 && !isReadOnly && (
                    <RemoveButton label={texts.removeTier(at + 1)} onClick={() => removeTier(at)} />
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {errorAt('tiers') && (
        <p role="alert" className={styles.fault}>
          {errorAt('tiers')}
        </p>
      )}
      {!isReadOnly && (
        <p className={styles.tierActions}>
          <button type="button" onClick={addTier}>
            {texts.addTier}
          </button>
          <span aria-hidden="true">·</span>
          <button type="button" onClick={() => setPasted('')}>
            {texts.paste}
          </button>
        </p>
      )}
      {pasted !== null && (
        <TierPaste
          text={pasted}
          scale={scale}
          onClose={() => setPasted(null)}
          onTiers={(read) => {
            setPasted(null);
            onTiers(toUnits(read, scale));
          }}
        />
      )}
    </>
  );
}

/** Tiers with prices per 10^scale units as tiers with prices per unit. */
function toUnits(tiers: readonly TierDraft[], scale: PriceScale): TierDraft[] {
  return tiers.map((tier) => ({ ...tier, unit_amount: scalePrice(tier.unit_amount, -scale) }));
}

/** Enter and the vertical arrows go to the cell below or above; Enter in the last row adds a tier before the open one. */
function moveInTable(
  event: KeyboardEvent<HTMLTableElement>,
  table: HTMLTableElement | null,
  addTier: () => void,
  isReadOnly: boolean,
): void {
  const { target, key } = event;
  if (!(target instanceof HTMLInputElement) || !['Enter', 'ArrowDown', 'ArrowUp'].includes(key)) return;
  const column: TierField | undefined = target.dataset['column'] as TierField | undefined;
  const cells = [...(table?.querySelectorAll<HTMLInputElement>(`input[data-column="${column}"]`) ?? [])];
  const next = cells[cells.indexOf(target) + (key === 'ArrowUp' ? -1 : 1)];
  event.preventDefault();
  if (next) {
    next.focus();
    next.select();
  } else if (key === 'Enter' && !isReadOnly) addTier();
}
