import type { ReactNode } from 'react';
import { Choice } from '../../components/choice.tsx';
import { useTexts } from '../../texts/texts.ts';
import styles from './price-editor.module.css';
import { type PriceScale, SCALES } from './price-figures.ts';
import { PRICE_TEXTS } from './price-texts.ts';

/** Choice of the number of units that the shown prices are for: one, a thousand or a million. */
export function ScaleChoice({
  scale,
  onScale,
}: {
  scale: PriceScale;
  onScale: (scale: PriceScale) => void;
}): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  return (
    <span className={styles.scale}>
      <span className="label">{texts.scale}</span>
      <Choice
        label={texts.scale}
        value={String(scale)}
        options={SCALES.map((power) => ({ value: String(power), label: texts.scaleName(power) }))}
        onValue={(power) => onScale(SCALES.find((each) => String(each) === power) ?? 0)}
      />
    </span>
  );
}
