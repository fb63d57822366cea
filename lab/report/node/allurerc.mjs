// How a session's Allure report is made. lab.report.build passes what differs between sessions through the environment.

// The quality gate of Allure 3.18 calls Iterator.prototype.toArray, which Node.js 20 does not have.
const iterator = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));
iterator.toArray ??= function () {
  return [...this];
};

export default {
  name: "Elastic Lab",
  historyPath: process.env.ELASTIC_LAB_HISTORY,
  historyLimit: 50,
  plugins: {
    awesome: {
      options: {
        singleFile: process.env.ELASTIC_LAB_SINGLE_FILE === "true",
        groupBy: ["epic", "feature"],
        reportLanguage: "en",
      },
    },
  },
  // What the page needs of a label is in it; a reader needs no more than the verdict.
  hideLabels: ["test"],
  // The first that matches takes the test. The label "verdict" is the session page's word for it, of lab/report/inallure.py.
  categories: [
    { name: "breached", matchers: { labels: { verdict: "^breached$" } } },
    { name: "invalid trial", matchers: { labels: { verdict: "^invalid$" } } },
    { name: "no data", matchers: { labels: { verdict: "^no data$" } }, groupByMessage: false },
    { name: "not run", matchers: { labels: { verdict: "^not run$" } } },
    { name: "broken: a fault of the lab", matchers: { statuses: ["broken"] } },
    { name: "failed beside its claims", matchers: { statuses: ["failed"] } },
    { name: "known behaviour of another project", matchers: { labels: { known: ".+" } }, groupBy: [{ label: "known" }], groupByMessage: false },
  ],
  // An experiment that did not run at all must not look like one that held.
  qualityGate: { rules: [{ minTestsCount: Number(process.env.ELASTIC_LAB_LEAST_TESTS ?? 1) }] },
};
