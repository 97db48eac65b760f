/** Names the aggregation of a meter in a word that stands before the property. */
import { defineTexts } from '../../../texts/texts.ts';

export const MEASURES = defineTexts(
  {
    COUNT: 'number',
    SUM: 'sum of',
    AVG: 'average of',
    COUNT_UNIQUE: 'different values of',
    LATEST: 'latest',
    SUM_WITH_MULTIPLIER: 'multiplied sum of',
    MAX: 'highest',
    WEIGHTED_SUM: 'level over time of',
  },
  {
    de: {
      COUNT: 'Anzahl',
      SUM: 'Summe von',
      AVG: 'Durchschnitt von',
      COUNT_UNIQUE: 'verschiedene Werte von',
      LATEST: 'letzter Wert von',
      SUM_WITH_MULTIPLIER: 'vervielfachte Summe von',
      MAX: 'höchster Wert von',
      WEIGHTED_SUM: 'Stand über die Zeit von',
    },
  },
);
