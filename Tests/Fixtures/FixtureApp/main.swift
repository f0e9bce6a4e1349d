// The sample app: carries out its arguments, one command each; "commands" reads more of them from standard input.
//
//     list | forms | shared | schedule ITEM | foreground ITEM | promote NAME | cancel NAME | container | values ITEM
//     again schedule|foreground|cancel NAME | promote-kept | obtain ITEM | ensure ITEM | fetch URL
//     delegate full|exclusive|mapped|blocking|unfinished|empty|none [LABEL] | delegate retry URL | delegate dropped
//     acquire | acquire-before MILLISECONDS | release | async value|error | async-before MILLISECONDS | enter COUNT
//     read NAME | write NAME TEXT | save NAME COUNT | watch NAME
//     bundle | replace FOLDER | map FILE | set NUMBER | get KEY | add PREFIX | count PREFIX
//     answers ANSWERS | answers-later ANSWERS
import BackgroundAssets
import FixturePlan
import Foundation

let driver = Driver()
for command in CommandLine.arguments.dropFirst() {
    if command == "commands" {
        while let line = readLine() { driver.perform(line) }
    } else {
        driver.perform(command)
    }
}
exit(0)
