/** A table that is pasted: its rows as text, the tiers that are read from them, and the question for numbers with two readings. */
import { Modal, Textarea } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { Button } from '../../components/button.tsx';
import { Choice } from '../../components/choice.tsx';
import { formatQuantity } from '../../figures/format.ts';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { type PointReading, parseTiers } from './parse-tiers.ts';
import type { TierDraft } from './price-draft.ts';
import styles from './price-editor.module.css';
import type { PriceScale } from './price-figures.ts';
import { PRICE_TEXTS } from './price-texts.ts';

type TierPasteProps = {
  text: string;
  scale: PriceScale;
  onTiers: (tiers: readonly TierDraft[]) => void;
  onClose: () => void;
};

export function TierPaste({ text: first, scale, onTiers, onClose }: TierPasteProps): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const language = useLanguage();
  const [text, setText] = useState(first);
  const [point, setPoint] = useState<PointReading | null>(null);
  const isDoubtful = parseTiers(text, language).isAmbiguous;
  const { tiers, faults } = parseTiers(text, language, point ?? undefined);
  const show = (value: string) => (value === '' ? '–' : formatQuantity(language, value));
  const blocked =
    faults.length > 0
      ? texts.pasteFault(faults.join(', '))
      : tiers.length === 0
        ? texts.pasteEmpty
        : isDoubtful && point === null
          ? texts.pastePoint
          : null;
  return (
    <Modal
      opened
      onClose={onClose}
      title={texts.pasteTitle}
      size="lg"
      closeButtonProps={{ 'aria-label': texts.cancel }}
    >
      <p className="muted">{texts.pasteHint}</p>
      <Textarea
        mt="md"
        label={texts.pasteField}
        description={texts.pasteHeader(texts.perScale(scale))}
        placeholder={'100,000,000\t3.00\n1,000,000,000\t2.00\n\t1.0223'}
        classNames={{ input: 'mono' }}
        value={text}
        rows={6}
        data-autofocus
        error={text !== '' && faults.length > 0 ? texts.pasteFault(faults.join(', ')) : undefined}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
      {isDoubtful && (
        <div className={styles.question}>
          <p>{texts.pastePoint}</p>
          <Choice<PointReading | ''>
            label={texts.pastePoint}
            value={point ?? ''}
            options={[
              { value: 'group', label: texts.pasteGroup },
              { value: 'decimal', label: texts.pasteDecimal },
            ]}
            onValue={(value) => setPoint(value === '' ? null : value)}
          />
        </div>
      )}
      {tiers.length > 0 && (
        <table className={styles.pasted}>
          <thead>
            <tr>
              <th scope="col">{texts.upTo}</th>
              <th scope="col">{texts.unitAmount}</th>
              <th scope="col">{texts.flatFee}</th>
            </tr>
          </thead>
          <tbody>
            {tiers.map((tier, at) => (
              <tr key={at}>
                <td>{at === tiers.length - 1 && tier.up_to === '' ? texts.noLimit : show(tier.up_to)}</td>
                <td>{show(tier.unit_amount)}</td>
                <td>{show(tier.flat_amount)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <div className={styles.modalActions}>
        <Button onClick={onClose}>{texts.cancel}</Button>
        <Button isPrimary blocked={blocked} onClick={() => onTiers(tiers)}>
          {texts.pasteUse(tiers.length)}
        </Button>
      </div>
    </Modal>
  );
}
