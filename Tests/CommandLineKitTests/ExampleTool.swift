// A small tool that has one of everything, so that the tests do not depend on the words of a real one.
import CommandLineKit

/// A tool with one thing to do, and short options.
let single = Tool(
    action: Verb(
        "ladle", "Serve soup",
        options: [
            Option("bowls", short: "b", "How many.", value: "number", kind: .number(1...9)),
            Option("hot", short: "t", "Heat it before."),
            Option("soup", "Which.", value: "name", kind: .choice(["pea", "leek"])),
        ],
        details: ["Takes the soup from the pot."], examples: [Remark("ladle -b 2", "Two bowls.")]),
    version: "3", description: ["ladle is for soup."], exitStatuses: [ExitStatusRow(0, "Done.")])

let example = Tool(
    name: "kitchen",
    version: "1.2",
    summary: "Cook and serve",
    description: ["kitchen cooks.", "It \\serves-too."],
    verbs: [
        Verb(
            "cook", "Cook a dish",
            arguments: [
                Argument("dish", "The dish to cook.", kind: .file),
                Argument("style", "How to cook it.", kind: .choice(["fried", "boiled", "raw"]), count: .optional),
                Argument("spice", "Given to the cook.", count: .rest),
            ],
            options: [
                Option("minutes", "How long.", value: "number", kind: .number(1...90)),
                Option("with", "What goes into it; may be given more than once.", value: "thing", repeats: true),
                Option("quick", "Do it quickly."),
            ],
            details: ["Uses every pan there is, one after the other, and cleans each of them before the next."],
            examples: [Remark("kitchen cook eggs fried --minutes 3", "Fry eggs.")]),
        Verb(
            "list", "List the dishes",
            options: [Option("after", "From here.", value: "n", kind: .number(0...Int64.max))]),
    ],
    options: [
        Option("room", "The kitchen to use.", value: "folder", kind: .folder), Option("json", "Print JSON."),
    ],
    exitStatuses: [ExitStatusRow(0, "Done."), ExitStatusRow(64, "Wrong words.")],
    environment: [Remark("KITCHEN", "The kitchen to use.")],
    seeAlso: ["knife(1)"])
